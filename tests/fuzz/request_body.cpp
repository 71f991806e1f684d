// A request's chunked body: taken apart and framed anew, the engine reads what the client sent.

#include "proxy/relay/request_body.hpp"

#include <string>

#include "proxy/relay/answer_body.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::proxy;

namespace {

struct Forwarded {
    std::string wire, payload;
    relay::RequestBody::Status status = relay::RequestBody::Status::ok;
    bool done = false;
};

Forwarded forwarded(std::string_view text, std::uint32_t seed, std::uint64_t most) {
    relay::RequestBody body({http::BodyKind::chunked, 0}, most);
    Forwarded result;
    fuzz::in_pieces(text, seed, [&](std::string_view piece) {
        while (result.status == relay::RequestBody::Status::ok && !body.done() && !piece.empty()) {
            const auto step = body.next(piece);
            result.wire += step.wire;
            result.payload += step.payload;
            result.status = step.status;
            piece.remove_prefix(step.consumed);
            if (step.consumed == 0) break;
        }
    });
    result.done = body.done();
    return result;
}

struct Sink : relay::PayloadSink {
    void payload(std::string_view piece) noexcept override { seen += piece; }
    std::string seen;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint32_t seed = input.byte();
    const std::uint64_t most = input.byte() % 4 == 0 ? 64 : 0;
    const Forwarded one = forwarded(input.rest(), seed, most);
    const Forwarded other = forwarded(input.rest(), seed + 7, most);
    fuzz::expect(one.status == other.status && one.done == other.done, "the same verdict however it comes");
    fuzz::expect(most == 0 || one.payload.size() <= most, "never more than is allowed");
    if (!one.done) return 0;
    fuzz::expect(one.payload == other.payload, "the same payload however it comes");
    relay::AnswerBody reader({http::BodyKind::chunked, 0}, true);
    const auto read = reader.pass(one.wire);
    Sink sink;
    reader.show(one.wire, sink);
    fuzz::expect(read.status == relay::AnswerBody::Status::done && read.consumed == one.wire.size(),
                 "the engine reads to the end and no further");
    fuzz::expect(sink.seen == one.payload, "the engine reads the same payload");
    return 0;
}
