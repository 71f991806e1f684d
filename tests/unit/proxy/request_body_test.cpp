#include "proxy/relay/request_body.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/every_cut.hpp"

namespace noren::proxy::relay {
namespace {

using http::BodyKind;
using http::Framing;
using test::for_every_cut;
using Status = RequestBody::Status;

constexpr Framing k_chunked{BodyKind::chunked, 0};

struct Taken {
    Status status = Status::ok;
    bool done = false;
    std::string wire, payload;
    std::size_t consumed = 0;
};

/// Feeds the pieces as they would come from a socket: what is not consumed stays in front of the next.
Taken take(const Framing& framing, const std::vector<std::string_view>& pieces, std::uint64_t max_bytes = 0) {
    RequestBody body(framing, max_bytes);
    Taken taken;
    std::string in;
    for (const std::string_view piece : pieces) {
        in.append(piece);
        for (;;) {
            const RequestBody::Step step = body.next(in);
            taken.wire.append(step.wire);
            taken.payload.append(step.payload);
            taken.consumed += step.consumed;
            taken.status = step.status;
            if (step.status != Status::ok) return taken;
            in.erase(0, step.consumed);
            if (step.consumed == 0) break;
        }
    }
    taken.done = body.done();
    return taken;
}

}  // namespace

TEST_CASE("a body of a length is taken to its last byte and not further") {
    for_every_cut("helloGET /", [](const std::vector<std::string_view>& pieces) {
        const Taken taken = take({BodyKind::length, 5}, pieces);
        CHECK(taken.status == Status::ok);
        CHECK(taken.done);
        CHECK(taken.wire == "hello");
        CHECK(taken.payload == "hello");
        CHECK(taken.consumed == 5);
    });
    CHECK_FALSE(take({BodyKind::length, 5}, {"hell"}).done);
}

TEST_CASE("no body is done before it begins") {
    for (const Framing& framing : {Framing{BodyKind::none, 0}, Framing{BodyKind::length, 0}}) {
        RequestBody body(framing, 0);
        CHECK(body.done());
        CHECK(body.next("GET /").consumed == 0);
    }
}

TEST_CASE("chunks are taken apart and framed anew, without extensions and bad trailers") {
    const std::string_view text =
        "5;e=\"\\\"\"\r\nhello\r\n3\r\nabc\r\n0;x\r\nX-Sum: 9\r\nContent-Length: 3\r\n\r\nGET /";
    CHECK(take(k_chunked, {text}).wire == "5\r\nhello\r\n3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n");
    for_every_cut(text, [&](const std::vector<std::string_view>& pieces) {
        const Taken taken = take(k_chunked, pieces);
        CHECK(taken.status == Status::ok);
        CHECK(taken.done);
        CHECK(taken.payload == "helloabc");
        CHECK(taken.consumed == text.size() - 5);
        // What went out is one valid body with the same content.
        const Taken again = take(k_chunked, {taken.wire});
        CHECK(again.done);
        CHECK(again.payload == "helloabc");
        CHECK(again.consumed == taken.wire.size());
        CHECK(taken.wire.find(';') == std::string::npos);
        CHECK(taken.wire.find("Content-Length") == std::string::npos);
    });
}

TEST_CASE("payload goes on before its chunk is whole") {
    RequestBody body(k_chunked, 0);
    const auto step = body.next("ffff\r\nhel");
    CHECK(step.wire == "3\r\nhel\r\n");
    CHECK(step.payload == "hel");
    CHECK(step.consumed == 9);
}

TEST_CASE("malformed chunks are told, and no last chunk is made up for them") {
    for_every_cut("2\r\nok\r\nzz\r\n0\r\n\r\n", [](const std::vector<std::string_view>& pieces) {
        const Taken taken = take(k_chunked, pieces);
        CHECK(taken.status == Status::malformed);
        CHECK(taken.payload == "ok");
        CHECK(taken.wire.find("0\r\n") == std::string::npos);
    });
    const Taken cut = take(k_chunked, {"2\r\nok\r\n"});
    CHECK(cut.status == Status::ok);
    CHECK_FALSE(cut.done);
    CHECK(cut.wire == "2\r\nok\r\n");
}

TEST_CASE("the limit holds for what is not declared, to the byte") {
    const std::string_view text = "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n";
    CHECK(take(k_chunked, {text}, 6).done);
    for_every_cut(text, [](const std::vector<std::string_view>& pieces) {
        const Taken taken = take(k_chunked, pieces, 5);
        CHECK(taken.status == Status::too_large);
        CHECK(taken.payload.size() <= 5);
    });
    CHECK(take(k_chunked, {text}, 0).done);
}

}  // namespace noren::proxy::relay
