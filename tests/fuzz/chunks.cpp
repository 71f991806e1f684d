// A chunked answer: however its bytes come, the client gets the same payload in a framing that a fresh
// reader accepts, and what is malformed is never passed on as if it were whole.

#include "proxy/http/chunks.hpp"

#include <string>

#include "proxy/relay/answer_body.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::proxy;

namespace {

struct Relayed : relay::PayloadSink {
    void payload(std::string_view piece) noexcept override { seen += piece; }
    std::string wire, seen;
    relay::AnswerBody::Status status = relay::AnswerBody::Status::running;
    std::size_t consumed = 0;
};

Relayed relayed(std::string_view text, std::uint32_t seed, bool dechunk) {
    relay::AnswerBody body({http::BodyKind::chunked, 0}, dechunk);
    Relayed result;
    fuzz::in_pieces(text, seed, [&](std::string_view piece) {
        if (result.status != relay::AnswerBody::Status::running) return;
        const auto passed = body.pass(piece);
        result.wire += passed.wire;
        result.status = passed.status;
        result.consumed += passed.consumed;
        body.show(piece, result);
    });
    return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using Status = relay::AnswerBody::Status;
    fuzz::Input input(data, size);
    const std::uint32_t seed = input.byte();
    const bool dechunk = seed % 4 == 0;
    const std::string_view text = input.rest();
    const Relayed one = relayed(text, seed, dechunk);
    const Relayed other = relayed(text, seed + 1, dechunk);
    fuzz::expect(one.status == other.status && one.seen == other.seen, "the same however the bytes come");
    if (dechunk) {
        fuzz::expect(one.wire == one.seen, "without chunks the wire is the payload");
        return 0;
    }
    if (one.status == Status::done) {
        fuzz::expect(one.wire == other.wire && one.consumed == other.consumed, "the same wire");
        const Relayed reread = relayed(one.wire, seed, false);
        fuzz::expect(reread.status == Status::done, "what goes out is whole");
        fuzz::expect(reread.seen == one.seen, "what goes out is the same payload");
        fuzz::expect(reread.wire == one.wire, "what is plain goes on as it came");
    } else {
        const Relayed reread = relayed(one.wire, seed, false);
        fuzz::expect(reread.status == Status::running, "what is not whole does not look whole");
    }
    return 0;
}
