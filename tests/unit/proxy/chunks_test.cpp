#include "proxy/http/chunks.hpp"

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/byte_set.hpp"
#include "tests/support/every_cut.hpp"

namespace noren::proxy::http {
namespace {

using namespace std::string_literals;
using Kind = ChunkScanner::Kind;
using test::ByteSet;

enum class End { done, awaits_more, error };

/// All that can be learnt from a chunked body that comes in these pieces.
struct Reading {
    End end = End::awaits_more;
    std::string payload;
    std::string trailers;              ///< "name=value;" each
    std::vector<std::uint64_t> sizes;  ///< of the chunks
    std::string size_lines;            ///< as they were handed out
    bool all_plain = true;
    std::size_t consumed = 0;
};

Reading read(const std::vector<std::string_view>& pieces) {
    ChunkScanner scanner;
    Reading reading;
    for (std::string_view piece : pieces) {
        while (!piece.empty() && !scanner.done()) {
            const ChunkScanner::Step step = scanner.next(piece);
            if (step.kind == Kind::error) {
                // Once refused, always refused.
                reading.end = scanner.next("0\r\n\r\n").kind == Kind::error ? End::error : End::done;
                return reading;
            }
            if (step.kind == Kind::payload) reading.payload.append(step.bytes);
            if (step.kind == Kind::size_line) {
                reading.sizes.push_back(step.size);
                reading.size_lines.append(step.bytes);
                reading.all_plain = reading.all_plain && step.plain;
            }
            // Progress with every step, or a promise that all was taken.
            REQUIRE(step.consumed > 0);
            REQUIRE(step.consumed <= piece.size());
            reading.consumed += step.consumed;
            piece.remove_prefix(step.consumed);
        }
    }
    if (scanner.done()) reading.end = End::done;
    for (const Field& field : scanner.trailers().all())
        reading.trailers.append(field.name).append("=").append(field.value).append(";");
    return reading;
}

End end_of(std::string_view body) {
    return read({body}).end;
}

/// What is read of the same bytes, however they are cut.
template <typename Check>
void with_every_cut(std::string_view text, Check&& check) {
    test::for_every_cut(text, [&](const std::vector<std::string_view>& pieces) { check(read(pieces)); });
}

struct Good {
    std::string text, payload, trailers;
    bool plain;
};
const std::vector<Good> k_good = {
    {"0\r\n\r\n", "", "", true},
    {"5\r\nhello\r\n0\r\n\r\n", "hello", "", true},
    {"5\r\nhello\r\n1\r\n!\r\n000\r\n\r\n", "hello!", "", true},
    {"00a\r\n0123456789\r\nB\r\nabcdefghijk\r\n0\r\n\r\n", "0123456789abcdefghijk", "", true},
    {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n", "", true},
    {"5;name=value;flag;q=\"a b\"\r\nhello\r\n0;last\r\n\r\n", "hello", "", false},
    {"1 ;\ta = \"\\\"\\\\;\" ;b\r\nx\r\n0\r\n\r\n", "x", "", false},
    {"1\r\nx\r\n0\r\nX-Sum: 9\r\nEmpty:\r\n\r\n", "x", "X-Sum=9;Empty=;", true},
    {"1\r\nx\r\n0\r\nContent-Length: 3\r\nHost: evil\r\nX-Ok: 1\r\nAuthorization: b\r\nx_y: z\r\n\r\n", "x",
     "X-Ok=1;", true},
};

// Each refused whatever comes behind.
const std::vector<std::string> k_bad = {
    "\r\n\r\n",
    "x\r\n",
    "0x5\r\nhello\r\n",
    "+5\r\nhello\r\n",
    "-5\r\nhello\r\n",
    " 5\r\nhello\r\n",
    "5 \r\nhello\r\n",
    "5\t\r\nhello\r\n",
    "5 5\r\nhello\r\n",
    "5g\r\nhello\r\n",
    "5\nhello\r\n",
    "5\r\r\nhello\r\n",
    "5\r\nhello0\r\n",
    "5\r\nhello\n0\r\n",
    "5\r\nhello\r0\r\n",
    "0\r\n\n",
    "0\r\nA: b\n\r\n",
    "0\r\n A: b\r\n\r\n",
    "0\r\nA : b\r\n\r\n",
    "0\r\nA: b\r\n c\r\n\r\n",
    "0\r\nnothing\r\n\r\n",
    "0\r\nA: b\0\r\n\r\n"s,
    "5;\r\nhello\r\n",
    "5;;a\r\nhello\r\n",
    "5;a=\r\nhello\r\n",
    "5;a b\r\nhello\r\n",
    "5;a \r\nhello\r\n",
    "5;=b\r\nhello\r\n",
    "5;a=b=c\r\nhello\r\n",
    "5;a=\"b\r\nhello\r\n",
    "5;a=\"b\"c\r\nhello\r\n",
    "5;a=\"\\\"\r\nhello\r\n",
    "5;a=\"\\\r\"\r\nhello\r\n",
    "5;a=\"\n\"\r\nhello\r\n",
    "5;a\rb\r\nhello\r\n",
    "fffffffffffffffff\r\nhello\r\n",
    "10000000000000000\r\n",
    "8000000000000000\r\n",
    "00000000000000005\r\nhello\r\n",
};

}  // namespace

TEST_CASE("a chunked body is read the same however it is cut") {
    for (const Good& good : k_good) {
        INFO(good.text);
        const std::string with_next = good.text + "GET /";
        CHECK(read({with_next}).consumed == good.text.size());
        with_every_cut(good.text, [&](const Reading& reading) {
            CHECK(reading.end == End::done);
            CHECK(reading.payload == good.payload);
            CHECK(reading.trailers == good.trailers);
            CHECK(reading.all_plain == good.plain);
            CHECK(reading.consumed == good.text.size());
        });
    }
}

TEST_CASE("every proper beginning of a chunked body awaits more") {
    for (const Good& good : k_good)
        for (std::size_t size = 0; size < good.text.size(); ++size)
            CHECK(end_of(std::string_view(good.text).substr(0, size)) == End::awaits_more);
}

TEST_CASE("a malformed chunked body is refused however it is cut") {
    for (const std::string& bad : k_bad) {
        INFO(bad);
        with_every_cut(bad, [&](const Reading& reading) { CHECK(reading.end == End::error); });
    }
}

TEST_CASE("size lines are handed out whole, also when they were cut") {
    with_every_cut("1a\r\nabcdefghijklmnopqrstuvwxyz\r\nC\r\n0123456789ab\r\n0\r\n\r\n",
                   [](const Reading& r) {
                       CHECK(r.size_lines == "1a\r\nC\r\n0\r\n");
                       CHECK(r.sizes == std::vector<std::uint64_t>{26, 12, 0});
                   });
}

TEST_CASE("payload and size lines of an uncut read are views of the input") {
    const std::string_view in = "3\r\nabc\r\n0\r\n\r\n";
    ChunkScanner scanner;
    const auto line = scanner.next(in);
    CHECK(line.bytes.data() == in.data());
    const auto payload = scanner.next(in.substr(3));
    CHECK(payload.kind == Kind::payload);
    CHECK(payload.bytes.data() == in.data() + 3);
}

TEST_CASE("every byte value in every place of a chunk's framing") {
    const ByteSet hex = test::bytes_of("0123456789abcdefABCDEF");
    const ByteSet tchar =
        test::bytes_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~");
    const ByteSet visible = test::bytes_between(0x21, 0x7e);
    const ByteSet blank = test::bytes_of(" \t");
    const ByteSet obs_text = test::bytes_between(0x80, 0xff);
    // All that is not refused at once: a size may be one whose bytes are still to come.
    const auto accepted = [](std::string_view before, std::string_view behind) {
        ByteSet set;
        for (int byte = 0; byte < 256; ++byte) {
            const std::string text = std::string(before) + static_cast<char>(byte) + std::string(behind);
            if (end_of(text) != End::error) set.set(static_cast<std::size_t>(byte));
        }
        return set;
    };
    CHECK(accepted("", "\r\n") == hex);
    CHECK(accepted("1", "\r\n") == hex);
    CHECK(accepted("1;", "\r\n") == tchar);
    CHECK(accepted("1;a", "b\r\n") == (tchar | test::bytes_of(";=")));
    CHECK(accepted("1;a=", "b\r\n") == (tchar | blank));
    // RFC 9110 5.6.4: qdtext and, behind a backslash, quoted-pair.
    CHECK(accepted("1;a=\"", "\"\r\n") == ((visible & ~test::bytes_of("\"\\")) | blank | obs_text));
    CHECK(accepted("1;a=\"\\", "\"\r\n") == (visible | blank | obs_text));
    CHECK(accepted("1;a=\"b\"", "\r\n").none());
    CHECK(accepted("1\r", "x\r\n") == test::bytes_of("\n"));
    CHECK(accepted("1\r\n", "\r\n0\r\n") == ByteSet().set());
    CHECK(accepted("1\r\nx", "\n0\r\n") == test::bytes_of("\r"));
    CHECK(accepted("1\r\nx\r", "0\r\n") == test::bytes_of("\n"));
    CHECK(accepted("0\r\n", ": b\r\n\r\n") == tchar);
    CHECK(accepted("0\r\nA:", "\r\n\r\n") == (visible | blank | obs_text));
}

TEST_CASE("sizes up to 2^63 - 1, in at most sixteen digits") {
    CHECK(read({"7fffffffffffffff\r\n"}).sizes == std::vector<std::uint64_t>{0x7fffffffffffffff});
    CHECK(read({"0000000000000001\r\n"}).sizes == std::vector<std::uint64_t>{1});
    CHECK(end_of("8000000000000000\r\n") == End::error);
    CHECK(end_of("ffffffffffffffff\r\n") == End::error);
}

TEST_CASE("what a peer can make us read for no payload is bounded") {
    const auto with_line_of = [](std::size_t size) {
        return "1;" + std::string(size - 4, 'x') + "\r\ny\r\n0\r\n\r\n";
    };
    CHECK(end_of(with_line_of(256)) == End::done);
    CHECK(end_of(with_line_of(257)) == End::error);
    CHECK(end_of("1;" + std::string(300, 'x')) == End::error);  // without waiting for its end
    CHECK(end_of("0\r\nA: " + std::string(8192 - 7, 'x') + "\r\n\r\n") == End::done);
    CHECK(end_of("0\r\nA: " + std::string(8192 - 6, 'x') + "\r\n\r\n") == End::error);
    // As it goes on, with a blank behind the colon, it has to fit as well.
    CHECK(end_of("0\r\nA:" + std::string(8192 - 7, 'x') + "\r\n\r\n") == End::done);
    CHECK(end_of("0\r\nA:" + std::string(8192 - 6, 'x') + "\r\n\r\n") == End::error);
    CHECK(end_of("0\r\nA:" + std::string(9000, 'x')) == End::error);
    std::string many = "0\r\n";
    for (int i = 0; i < 2000; ++i)
        many += "A: b\r\n";
    CHECK(end_of(many) == End::error);
}

TEST_CASE("nothing is read behind the end") {
    ChunkScanner scanner;
    scanner.next("0\r\n");
    CHECK(scanner.next("\r\n").kind == Kind::trailers);
    CHECK(scanner.done());
    const auto step = scanner.next("5\r\nhello\r\n");
    CHECK(step.kind == Kind::more);
    CHECK(step.consumed == 0);
}

TEST_CASE("fields that are not to be taken from a trailer section") {
    for (const std::string_view name : {"Transfer-Encoding",
                                        "content-length",
                                        "HOST",
                                        "Connection",
                                        "TE",
                                        "Trailer",
                                        "Authorization",
                                        "Cookie",
                                        "Set-Cookie",
                                        "Cache-Control",
                                        "Expect",
                                        "Range",
                                        "Content-Encoding",
                                        "Content-Type",
                                        "Content-Range",
                                        "Location",
                                        "Retry-After",
                                        "Vary",
                                        "Date",
                                        "Age",
                                        "Via",
                                        "x-request-id",
                                        "content_length"}) {
        INFO(name);
        CHECK(is_forbidden_trailer(name));
    }
    for (const std::string_view name : {"Server-Timing", "x-checksum", "grpc-status", "Digest", "ETag"}) {
        INFO(name);
        CHECK_FALSE(is_forbidden_trailer(name));
    }
}

TEST_CASE("random bodies in random chunks, extensions and reads come out as they went in") {
    std::mt19937 random(20261130);
    const auto pick = [&](std::size_t n) {
        return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
    };
    for (int round = 0; round < 2000; ++round) {
        std::string payload, wire;
        for (std::size_t chunk = pick(8); chunk > 0; --chunk) {
            std::string data(1 + pick(300), '\0');
            for (char& c : data)
                c = "\r\n0;az"[pick(7)];
            char size[32];
            std::snprintf(size, sizeof size, pick(2) ? "%zx" : "%04zX", data.size());
            wire += size + std::string(pick(3) ? "" : ";x=\"\\\"\"") + "\r\n" + data + "\r\n";
            payload += data;
        }
        wire += pick(2) ? "0\r\n\r\n" : "0\r\nX-Sum: 1\r\n\r\n";
        std::vector<std::string_view> pieces;
        for (std::string_view rest = wire; !rest.empty();) {
            pieces.push_back(rest.substr(0, 1 + pick(pick(2) ? 5 : 400)));
            rest.remove_prefix(pieces.back().size());
        }
        const Reading reading = read(pieces);
        REQUIRE(reading.end == End::done);
        REQUIRE(reading.payload == payload);
        REQUIRE(reading.consumed == wire.size());
    }
}

}  // namespace noren::proxy::http
