#include "proxy/relay/answer_body.hpp"

#include <random>
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
using Status = AnswerBody::Status;

/// Keeps what an observer would see.
class Seen final : public PayloadSink {
  public:
    void payload(std::string_view piece) noexcept override { text.append(piece); }
    std::string text;
};

struct Relayed {
    Status status = Status::running;
    std::string wire, payload;
    std::size_t consumed = 0;
};

Relayed relay(AnswerBody& body, const std::vector<std::string_view>& pieces) {
    Relayed relayed;
    Seen seen;
    for (const std::string_view piece : pieces) {
        const AnswerBody::Passed passed = body.pass(piece);
        relayed.wire.append(passed.wire);
        relayed.consumed += passed.consumed;
        body.show(piece, seen);
    }
    relayed.status = body.status();
    relayed.payload = seen.text;
    return relayed;
}

Relayed relay(const Framing& framing, bool dechunk, const std::vector<std::string_view>& pieces) {
    AnswerBody body(framing, dechunk);
    return relay(body, pieces);
}

constexpr Framing k_chunked{BodyKind::chunked, 0};

}  // namespace

TEST_CASE("plain chunks go on as they came, however they are cut") {
    const std::string_view text = "5\r\nhello\r\n00B\r\n, world\r\n!!\r\n0\r\n\r\n";
    for_every_cut(text, [&](const std::vector<std::string_view>& pieces) {
        const Relayed relayed = relay(k_chunked, false, pieces);
        CHECK(relayed.status == Status::done);
        CHECK(relayed.wire == text);
        CHECK(relayed.payload == "hello, world\r\n!!");
        CHECK(relayed.consumed == text.size());
    });
}

TEST_CASE("whole plain chunks are passed on in the buffer they came in") {
    AnswerBody body(k_chunked, false);
    for (const std::string_view in : {"3\r\nabc\r\n2\r\nde\r\n", "4\r\nfghi", "\r\n1\r\nj\r\n"}) {
        const AnswerBody::Passed passed = body.pass(in);
        CHECK(passed.wire == in);
        CHECK(passed.wire.data() == in.data());
    }
}

TEST_CASE("payload that is here goes on at once, only framing is held") {
    AnswerBody body(k_chunked, false);
    CHECK(body.pass("5\r\nhel").wire == "5\r\nhel");
    CHECK(body.pass("lo").wire == "lo");
    CHECK(body.pass("\r").wire == "\r");
    CHECK(body.pass("\n1").wire == "\n");
    CHECK(body.pass("\r").wire.empty());
    CHECK(body.pass("\nx").wire == "1\r\nx");
    CHECK(body.pass("\r\n0\r\n").wire == "\r\n");
    CHECK(body.pass("\r\n").wire == "0\r\n\r\n");
    CHECK(body.status() == Status::done);
}

TEST_CASE("extensions do not go on, trailers do") {
    const std::string_view text = "5;e=\"x\"\r\nhello\r\n1\r\n!\r\n0;end\r\nX-Sum:  9\r\nHost: evil\r\n\r\n";
    for_every_cut(text, [](const std::vector<std::string_view>& pieces) {
        const Relayed relayed = relay(k_chunked, false, pieces);
        CHECK(relayed.status == Status::done);
        CHECK(relayed.wire == "5\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 9\r\n\r\n");
        CHECK(relayed.payload == "hello!");
    });
}

TEST_CASE("a client without chunks gets the payload only") {
    for_every_cut("5;e=1\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 9\r\n\r\n",
                  [](const std::vector<std::string_view>& pieces) {
                      const Relayed relayed = relay(k_chunked, true, pieces);
                      CHECK(relayed.status == Status::done);
                      CHECK(relayed.wire == "hello!");
                      CHECK(relayed.payload == "hello!");
                  });
}

TEST_CASE("malformed chunks: what was good goes on, nothing of the rest, and no end") {
    for_every_cut("2\r\nok\r\n1\r\nxx0\r\n\r\n", [](const std::vector<std::string_view>& pieces) {
        for (const bool dechunk : {false, true}) {
            const Relayed relayed = relay(k_chunked, dechunk, pieces);
            CHECK(relayed.status == Status::malformed);
            CHECK(relayed.wire == (dechunk ? "okx" : "2\r\nok\r\n1\r\nx"));
            CHECK(relayed.payload == "okx");
        }
    });
}

TEST_CASE("a body of a length ends with its last byte, and shows what is too much") {
    for_every_cut("hello", [](const std::vector<std::string_view>& pieces) {
        const Relayed relayed = relay({BodyKind::length, 5}, false, pieces);
        CHECK(relayed.status == Status::done);
        CHECK(relayed.wire == "hello");
        CHECK(relayed.payload == "hello");
    });
    AnswerBody body({BodyKind::length, 5}, false);
    const std::string_view in = "helloHTTP/1.1 200";
    const auto passed = body.pass(in);
    CHECK(passed.status == Status::done);
    CHECK(passed.wire == "hello");
    CHECK(passed.wire.data() == in.data());
    CHECK(passed.consumed == 5);
    CHECK(body.pass("x").consumed == 0);
}

TEST_CASE("surplus behind the last chunk is not consumed") {
    AnswerBody body(k_chunked, false);
    const auto passed = body.pass("1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 EVIL");
    CHECK(passed.status == Status::done);
    CHECK(passed.consumed == 11);
    CHECK(passed.wire == "1\r\nx\r\n0\r\n\r\n");
}

TEST_CASE("a bodyless answer is done before it begins, all behind it is surplus") {
    for (const Framing& framing : {Framing{BodyKind::none, 0}, Framing{BodyKind::length, 0}}) {
        AnswerBody body(framing, false);
        CHECK(body.status() == Status::done);
        const auto passed = body.pass("x");
        CHECK(passed.wire.empty());
        CHECK(passed.consumed == 0);
        Seen seen;
        body.show("x", seen);
        CHECK(seen.text.empty());
    }
}

TEST_CASE("the close of the connection ends only what says so") {
    AnswerBody until_close({BodyKind::until_close, 0}, false);
    CHECK(relay(until_close, {"a", "b"}).wire == "ab");
    CHECK(until_close.status() == Status::running);
    CHECK(until_close.at_close() == Status::done);

    AnswerBody cut({BodyKind::length, 5}, false);
    cut.pass("hell");
    CHECK(cut.at_close() == Status::malformed);

    for (const std::string_view beginning : {"", "1", "1\r\nx", "1\r\nx\r\n", "1\r\nx\r\n0\r\n", "0\r\n\r"}) {
        INFO(beginning);
        AnswerBody chunks(k_chunked, false);
        chunks.pass(beginning);
        CHECK(chunks.at_close() == Status::malformed);
    }
    AnswerBody whole(k_chunked, false);
    whole.pass("0\r\n\r\n");
    CHECK(whole.at_close() == Status::done);
}

TEST_CASE("random streams in random reads: the wire is the engine's, the payload what it framed") {
    std::mt19937 random(20261130);
    const auto pick = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (int round = 0; round < 2000; ++round) {
        std::string payload, wire;
        for (std::size_t chunk = pick(10); chunk > 0; --chunk) {
            const std::string data(1 + pick(40), "\r\n0"[pick(3)]);
            constexpr std::string_view digits = "0123456789abcdef";
            wire +=
                std::string(1, digits[data.size() / 16]) + digits[data.size() % 16] + "\r\n" + data + "\r\n";
            payload += data;
        }
        wire += "0\r\n\r\n";
        std::vector<std::string_view> pieces;
        for (std::string_view rest = wire; !rest.empty(); rest.remove_prefix(pieces.back().size()))
            pieces.push_back(rest.substr(0, 1 + pick(50)));
        const Relayed same = relay(k_chunked, false, pieces);
        REQUIRE(same.status == Status::done);
        REQUIRE(same.wire == wire);
        REQUIRE(same.payload == payload);
        const Relayed bare = relay(k_chunked, true, pieces);
        REQUIRE(bare.wire == payload);
        REQUIRE(bare.payload == payload);
    }
}

}  // namespace noren::proxy::relay
