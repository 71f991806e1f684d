#include "tests/bench/load/answer_reader.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace {

using load::AnswerReader;

struct Read {
    std::vector<std::string> events;
    AnswerReader reader{[this](const load::Event& event) { events.emplace_back(event.data); }};
    bool fine = true;

    explicit Read(std::string_view bytes, std::size_t split = std::string_view::npos) {
        fine = reader.feed(bytes.substr(0, split));
        if (fine && split < bytes.size()) fine = reader.feed(bytes.substr(split));
    }
    explicit Read(const char* bytes) : Read(std::string_view(bytes)) {}
};

const std::string k_chunked =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
    "X-Two: a\r\nx-two:  b \r\n\r\n"
    "8\r\ndata: 1\n\r\n"
    "A;why=not\r\n\ndata: 22\n\r\n"
    "1\r\n\n\r\n"
    "0\r\nX-Trailer: t\r\n\r\n";

}  // namespace

TEST_CASE("a chunked event stream is read the same however it is split") {
    for (std::size_t split = 0; split <= k_chunked.size(); ++split) {
        INFO("split at " << split);
        const Read read(k_chunked, split);
        REQUIRE(read.fine);
        REQUIRE(read.reader.whole());
        CHECK(read.reader.keeps_alive());
        CHECK(read.events == std::vector<std::string>{"1", "22"});
        CHECK(read.reader.field("x-two") == "a, b");
        CHECK(read.reader.trailer("x-trailer") == "t");
        CHECK(read.reader.field("x-trailer").empty());
        CHECK(read.reader.body_bytes() == 19);
    }
}

TEST_CASE("a chunked answer is whole with its last chunk only, never by closing") {
    for (std::size_t length = 0; length < k_chunked.size(); ++length) {
        INFO("cut at " << length);
        Read read(std::string_view(k_chunked).substr(0, length));
        REQUIRE(read.fine);
        CHECK_FALSE(read.reader.whole());
        CHECK_FALSE(read.reader.closed());
        CHECK_FALSE(read.reader.keeps_alive());
    }
}

TEST_CASE("a body of known length") {
    const Read read("HTTP/1.1 429 Too Many\r\nContent-Length: 5\r\nRetry-After: 3\r\n\r\nhello");
    REQUIRE(read.fine);
    CHECK(read.reader.whole());
    CHECK(read.reader.status() == 429);
    CHECK(read.reader.field("retry-after") == "3");
    CHECK(read.reader.document() == "hello");
    CHECK(read.reader.body_hash() == 0xa430d84680aabd0bULL);  // FNV-1a of "hello"

    Read shorter("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello");
    CHECK_FALSE(shorter.reader.closed());
}

TEST_CASE("an answer that closing ends does not keep its connection") {
    Read read("HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n{\"a\":1}\n{\"b\"");
    REQUIRE(read.fine);
    CHECK_FALSE(read.reader.whole());
    CHECK(read.events.size() == 1);
    CHECK(read.reader.closed());
    CHECK(read.events.size() == 2);
    CHECK_FALSE(read.reader.keeps_alive());
}

TEST_CASE("answers without a body, and those before the final one") {
    CHECK(Read("HTTP/1.1 204 No Content\r\n\r\n").reader.whole());
    CHECK(Read("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n").reader.whole());
    CHECK(Read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").reader.whole());
    const Read read(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    CHECK(read.reader.status() == 200);
    CHECK(read.reader.field("link").empty());
    CHECK(read.reader.whole());
    CHECK_FALSE(Read("HTTP/1.1 100 Continue\r\n\r\n").reader.head_known());
}

TEST_CASE("whether a connection may be used again") {
    const auto keeps = [](const std::string& version, const std::string& field) {
        return Read(version + " 200 OK\r\nContent-Length: 0\r\n" + field + "\r\n").reader.keeps_alive();
    };
    CHECK(keeps("HTTP/1.1", ""));
    CHECK_FALSE(keeps("HTTP/1.1", "Connection: Close\r\n"));
    CHECK_FALSE(keeps("HTTP/1.1", "Connection: foo, close\r\n"));
    CHECK_FALSE(keeps("HTTP/1.0", ""));
    CHECK(keeps("HTTP/1.0", "Connection: keep-alive\r\n"));
}

TEST_CASE("what breaks HTTP's rules is refused, and says how") {
    struct Case {
        std::string bytes, problem;
    };
    const std::string ok = "HTTP/1.1 200 OK\r\n", chunked = ok + "Transfer-Encoding: chunked\r\n\r\n";
    const std::vector<Case> cases = {
        {"garbage\r\n\r\n", "status line"},
        {"HTTP/2.0 200 OK\r\n\r\n", "status line"},
        {"HTTP/1.1 20 OK\r\n\r\n", "status line"},
        {"HTTP/1.1 2000 OK\r\n\r\n", "status line"},
        {"HTTP/1.1 -20 OK\r\n\r\n", "status line"},
        {"HTTP/1.1 200\r\n\r\n", "status line"},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101"},
        {ok + "no colon\r\n\r\n", "field line"},
        {ok + "a : b\r\n\r\n", "field line"},
        {ok + "a: b\r\n folded\r\n\r\n", "field line"},
        {ok + "a: b\rc\r\n\r\n", "field line"},
        {ok + "a: b\n", "bare LF"},
        {ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both"},
        {ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", "Content-Length"},
        {ok + "Content-Length: +1\r\n\r\n", "Content-Length"},
        {ok + "Content-Length: 99999999999999999999\r\n\r\n", "Content-Length"},
        {ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", "Transfer-Encoding"},
        {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding"},
        {"HTTP/1.1 204 None\r\nTransfer-Encoding: chunked\r\n\r\n", "Transfer-Encoding"},
        {chunked + "zz\r\n", "chunk size"},
        {chunked + "\r\n", "chunk size"},
        {chunked + "1 \r\n", "chunk size"},
        {chunked + "11111111111111111\r\n", "chunk size"},
        {chunked + "1\n", "bare LF"},
        {chunked + "1\r\nab", "CRLF behind"},
        {chunked + "1\r\na\rb", "CRLF behind"},
        {chunked + "0\r\nno trailer\r\n", "trailer"},
        {ok + "Content-Length: 1\r\n\r\nab", "behind the end"},
        {ok + "a: " + std::string(70'000, 'x'), "64 KiB"},
    };
    for (const Case& bad : cases) {
        INFO(bad.bytes.substr(0, 80));
        Read read(bad.bytes);
        CHECK_FALSE(read.fine);
        CHECK_THAT(read.reader.problem(), Catch::Contains(bad.problem));
        CHECK_FALSE(read.reader.feed("x"));
        CHECK_FALSE(read.reader.closed());
    }
}
