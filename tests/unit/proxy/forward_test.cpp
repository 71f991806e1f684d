#include "proxy/http/forward.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::proxy::http {
namespace {

std::string to_engine(const std::string& text) {
    const auto parsed = parse_request_head(text);
    REQUIRE(std::holds_alternative<RequestHead>(parsed));
    const auto& head = std::get<RequestHead>(parsed);
    return upstream_head(head, std::get<Framing>(request_framing(head)), "id-1");
}

std::string to_client(const std::string& text, const Delivery& how) {
    const auto parsed = parse_response_head(text);
    REQUIRE(std::holds_alternative<ResponseHead>(parsed));
    return downstream_head(std::get<ResponseHead>(parsed), how, "id-1");
}

constexpr std::string_view k_date = "Sun, 06 Nov 1994 08:49:37 GMT";

Delivery delivery(BodyKind kind, std::uint64_t length, bool keep_alive, int client_minor) {
    return {{kind, length}, keep_alive, client_minor, k_date};
}
Delivery chunked(bool keep_alive = true) {
    return delivery(BodyKind::chunked, 0, keep_alive, 1);
}

/// A head taken apart with as little as possible, so that it judges the real parser's work too.
struct Plain {
    std::string first_line;
    std::vector<std::pair<std::string, std::string>> fields;  ///< names in lower case

    std::vector<std::string> values(std::string_view name) const {
        std::vector<std::string> found;
        for (const auto& [n, value] : fields)
            if (n == name) found.push_back(value);
        return found;
    }
};

bool is_line_text(std::string_view line) {
    return std::none_of(line.begin(), line.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && byte != '\t') || byte == 0x7f;
    });
}

Plain take_apart(const std::string& head) {
    Plain plain;
    REQUIRE(head.size() > 4);
    REQUIRE(head.find("\r\n\r\n") == head.size() - 4);
    std::string_view rest(head.data(), head.size() - 2);
    for (bool first = true; !rest.empty(); first = false) {
        const std::string_view line = rest.substr(0, rest.find("\r\n"));
        rest.remove_prefix(line.size() + 2);
        REQUIRE(is_line_text(line));
        if (first) {
            plain.first_line = line;
            continue;
        }
        const std::size_t colon = line.find(": ");
        REQUIRE(colon != std::string_view::npos);
        REQUIRE(colon != 0);
        std::string name(line.substr(0, colon));
        for (char& c : name) {
            REQUIRE((std::isalnum(static_cast<unsigned char>(c)) ||
                     std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos));
            c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
        plain.fields.emplace_back(name, line.substr(colon + 2));
    }
    return plain;
}

}  // namespace

TEST_CASE("a request goes to the engine in one clean form") {
    CHECK(to_engine("POST /v1/x?a=b HTTP/1.1\r\nX-One:  1 \r\nHOST: shop.test\r\nContent-Length: 05\r\n"
                    "content-length: 5\r\nAccept: a\r\nACCEPT: b\r\nX-Empty:\r\n\r\n") ==
          "POST /v1/x?a=b HTTP/1.1\r\nHost: shop.test\r\nX-One: 1\r\nAccept: a\r\nACCEPT: b\r\nX-Empty: \r\n"
          "Content-Length: 5\r\nVia: 1.1 noren\r\nx-request-id: id-1\r\n\r\n");
    CHECK(
        to_engine(
            "GET http://a.test:81 HTTP/1.1\r\nHost: b.test\r\nX-Request-Id: mine\r\nVia: 1.0 edge\r\n\r\n") ==
        "GET / HTTP/1.1\r\nHost: a.test:81\r\nVia: 1.0 edge\r\nVia: 1.1 noren\r\nx-request-id: id-1\r\n\r\n");
    CHECK(to_engine("GET / HTTP/1.0\r\n\r\n") ==
          "GET / HTTP/1.1\r\nHost: \r\nVia: 1.0 noren\r\nx-request-id: id-1\r\n\r\n");
    CHECK(to_engine("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\nTE: trailers\r\n\r\n") ==
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nVia: 1.1 noren\r\n"
          "x-request-id: id-1\r\n\r\n");
}

TEST_CASE("hop-by-hop fields stop here, nominated ones too") {
    const Plain plain =
        take_apart(to_engine("GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, upgrade ,close\r\nconnection: "
                             "HTTP2-Settings,x-late\r\n"
                             "x-hop: 1\r\nX-LATE: 2\r\nX-Stay: 3\r\nKeep-Alive: 5\r\nProxy-Connection: "
                             "x\r\nTE: gzip\r\nUpgrade: h2c\r\n"
                             "HTTP2-Settings: AAA\r\nProxy-Authorization: b\r\n\r\n"));
    std::set<std::string> names;
    for (const auto& field : plain.fields)
        names.insert(field.first);
    CHECK(names == std::set<std::string>{"host", "x-stay", "via", "x-request-id"});
}

TEST_CASE("nobody nominates away what others read the request by") {
    const Plain plain =
        take_apart(to_engine("POST / HTTP/1.1\r\nHost: a\r\nConnection: host, content-length, "
                             "transfer-encoding, via, x-request-id, "
                             "authorization, content-type, content-encoding\r\nContent-Length: "
                             "3\r\nAuthorization: b\r\nVia: 1.1 edge\r\n"
                             "X-Request-Id: mine\r\nContent-Type: c\r\nContent-Encoding: d\r\n\r\n"));
    CHECK(plain.values("host") == std::vector<std::string>{"a"});
    CHECK(plain.values("content-length") == std::vector<std::string>{"3"});
    CHECK(plain.values("authorization") == std::vector<std::string>{"b"});
    CHECK(plain.values("via") == std::vector<std::string>{"1.1 edge", "1.1 noren"});
    CHECK(plain.values("x-request-id") == std::vector<std::string>{"id-1"});  // that of log and answer
    CHECK(plain.values("content-type") == std::vector<std::string>{"c"});
    CHECK(plain.values("content-encoding") == std::vector<std::string>{"d"});
}

TEST_CASE("names with an underscore do not reach the engine") {
    const std::string head =
        to_engine("POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 9\r\nX_Y: 1\r\nX-Y: 2\r\n\r\n");
    CHECK(head.find('_') == std::string::npos);
    CHECK(take_apart(head).values("x-y") == std::vector<std::string>{"2"});
}

TEST_CASE("the engine is told the id that the log has, and no other") {
    const auto ids = [](const std::string& fields) {
        return take_apart(to_engine("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"))
            .values("x-request-id");
    };
    const std::vector<std::string> own = {"id-1"};
    CHECK(ids("") == own);
    CHECK(ids("X-Request-Id: id-1\r\n") == own);
    CHECK(ids("X-Request-Id:\r\n") == own);
    CHECK(ids("X-Request-Id: " + std::string(200, 'x') + "\r\n") == own);
    CHECK(ids("X-Request-Id: caf\xc3\xa9\r\n") == own);
    CHECK(ids("X-Request-Id: id-1\r\nx-request-id: id-2\r\n") == own);
}

TEST_CASE("Expect goes on only where a 100 can be asked for and told") {
    const auto expect_of = [](const std::string& text) {
        return take_apart(to_engine(text)).values("expect");
    };
    const std::vector<std::string> asked{"100-continue"};
    CHECK(expect_of("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n") ==
          asked);
    CHECK(expect_of(
              "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n") ==
          asked);
    CHECK(expect_of("POST / HTTP/1.1\r\nHost: a\r\nExpect: x, 100-continue\r\nContent-Length: 1\r\n\r\n") ==
          asked);
    CHECK(expect_of("POST / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n").empty());
    CHECK(
        expect_of("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n").empty());
    CHECK(expect_of("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n").empty());
    CHECK(expect_of("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n").empty());
}

TEST_CASE("an OPTIONS request comes one hop closer to its last server") {
    const auto forwards = [](const std::string& method, const std::string& number) {
        return take_apart(
                   to_engine(method + " / HTTP/1.1\r\nHost: a\r\nMax-Forwards: " + number + "\r\n\r\n"))
            .values("max-forwards");
    };
    CHECK(forwards("OPTIONS", "1") == std::vector<std::string>{"0"});
    CHECK(forwards("OPTIONS", "0010") == std::vector<std::string>{"9"});
    CHECK(forwards("OPTIONS", "99999999999999999999") == std::vector<std::string>{"9223372036854775806"});
    CHECK(forwards("GET", "0") == std::vector<std::string>{"0"});  // of no meaning there
    CHECK(take_apart(to_engine("OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 2\r\n"
                               "Connection: max-forwards\r\n\r\n"))
              .values("max-forwards") == std::vector<std::string>{"1"});
    CHECK(take_apart(to_engine("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")).values("max-forwards").empty());
}

TEST_CASE("an answer without a Date gets that of its receipt") {
    const auto dates = [](const std::string& fields) {
        return take_apart(to_client("HTTP/1.1 200 OK\r\n" + fields + "\r\n", chunked())).values("date");
    };
    CHECK(dates("") == std::vector<std::string>{std::string(k_date)});
    CHECK(dates("date: Mon, 07 Nov 1994 08:49:37 GMT\r\nConnection: date\r\n") ==
          std::vector<std::string>{"Mon, 07 Nov 1994 08:49:37 GMT"});
}

TEST_CASE("an answer goes to the client with its framing, and persistence said") {
    const std::string text =
        "HTTP/1.1 200 All good\r\nContent-Type: a\r\nTransfer-Encoding: chunked\r\nConnection: "
        "x-hop\r\nX-Hop: 1\r\n"
        "Set-Cookie: a\r\nSet-Cookie: b\r\nKeep-Alive: 5\r\n\r\n";
    CHECK(to_client(text, chunked()) ==
          "HTTP/1.1 200 All good\r\nContent-Type: a\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
          "Transfer-Encoding: chunked\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-request-id: id-1\r\n\r\n");
    CHECK(take_apart(to_client(text, chunked(false))).values("connection") ==
          std::vector<std::string>{"close"});
    const Plain old = take_apart(to_client(text, delivery(BodyKind::until_close, 0, false, 0)));
    CHECK(old.values("transfer-encoding").empty());
    CHECK(old.values("connection") == std::vector<std::string>{"close"});
    const Plain kept = take_apart(to_client("HTTP/1.0 200 OK\r\nContent-Length: 3\r\nx-request-id: e\r\n\r\n",
                                            delivery(BodyKind::length, 3, true, 0)));
    CHECK(kept.first_line == "HTTP/1.1 200 OK");
    CHECK(kept.values("connection") == std::vector<std::string>{"keep-alive"});
    CHECK(kept.values("content-length") == std::vector<std::string>{"3"});
    CHECK(kept.values("x-request-id") == std::vector<std::string>{"e"});
}

TEST_CASE("a bodyless answer tells its length once, or not at all with 204") {
    const Delivery none = delivery(BodyKind::none, 0, true, 1);
    const auto lengths = [&](const std::string& status) {
        const std::string text =
            "HTTP/1.1 " + status + " X\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n";
        return take_apart(to_client(text, none)).values("content-length");
    };
    CHECK(lengths("200") == std::vector<std::string>{"7"});
    CHECK(lengths("304") == std::vector<std::string>{"7"});
    CHECK(lengths("204").empty());
    CHECK(take_apart(to_client("HTTP/1.1 200 OK\r\n\r\n", none)).values("content-length").empty());
}

TEST_CASE("an interim answer has neither framing nor hop-by-hop fields") {
    const auto parsed = parse_response_head(
        "HTTP/1.1 103 Early Hints\r\nLink: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n");
    CHECK(interim_head(std::get<ResponseHead>(parsed)) == "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
}

TEST_CASE("chunk lines and ends") {
    CHECK(chunk_size_line(0) == "0\r\n");
    CHECK(chunk_size_line(0x1a0) == "1a0\r\n");
    CHECK(chunk_size_line(0x7fffffffffffffff) == "7fffffffffffffff\r\n");
    Fields trailers;
    CHECK(chunked_end(trailers) == "0\r\n\r\n");
    trailers.add("X-Sum", "9");
    CHECK(chunked_end(trailers) == "0\r\nX-Sum: 9\r\n\r\n");
}

namespace {

/// Heads made of what attackers play with, most of them nearly valid.
class HeadMaker {
  public:
    std::string request() {
        std::string text = one_of({"GET", "POST", "HEAD", "OPTIONS", "get"});
        text += one_of(
            {" / ", " /v1/chat/completions ", " http://h.test/x ", " * ", " /a%0d%0aX:b ", " /a?b=c "});
        text += one_of({"HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"});
        text += "\r\nHost: h.test\r\n" + fields();
        return damaged(text + "\r\n");
    }
    std::string response() {
        std::string text = one_of({"HTTP/1.1", "HTTP/1.0"});
        text += one_of({" 200 OK", " 204 ", " 304 Not Modified", " 404 x", " 503"});
        return damaged(text + "\r\n" + fields() + "\r\n");
    }
    std::size_t pick(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

  private:
    std::string one_of(const std::vector<std::string>& choices) { return choices[pick(choices.size())]; }
    std::string fields() {
        std::string text;
        for (std::size_t n = pick(7); n > 0; --n) {
            text += one_of({"Connection", "connection", "X-Hop", "X-Stay", "Content-Length", "content-length",
                            "Transfer-Encoding", "Upgrade", "TE", "Expect", "Via", "Keep-Alive",
                            "x-request-id", "Content_Length", "Set-Cookie", "Proxy-Authorization"});
            text += one_of({": ", ":", ":\t"});
            text += one_of({"5", "5", "chunked", "close", "X-Hop, x-stay", "keep-alive, Content-Length", "",
                            "100-continue", "h2c", "a\tb \xff", "Host, Via"});
            text += "\r\n";
        }
        return text;
    }
    std::string damaged(std::string text) {
        for (std::size_t n = pick(3) == 0 ? pick(3) : 0; n > 0; --n)
            text[pick(text.size())] =
                "\r\n\0 \t:,/\x7f\x80"
                "aZ5"[pick(13)];
        return text;
    }
    std::mt19937 random_{20261130};
};

constexpr std::array<std::string_view, 8> k_stopped_here = {
    "keep-alive",         "proxy-connection", "te", "upgrade", "http2-settings", "proxy-authorization",
    "proxy-authenticate", "content_length"};

void check_framing(const Plain& plain, const Framing& framing) {
    const auto lengths = plain.values("content-length");
    const auto codings = plain.values("transfer-encoding");
    REQUIRE(lengths.size() + codings.size() <= 1);
    if (framing.kind == BodyKind::length)
        REQUIRE(lengths == std::vector<std::string>{std::to_string(framing.length)});
    if (framing.kind == BodyKind::chunked) REQUIRE(codings == std::vector<std::string>{"chunked"});
}

}  // namespace

TEST_CASE("whatever a client sends, the engine gets a head that can be read in one way only") {
    HeadMaker maker;
    int forwarded = 0;
    for (int round = 0; round < 60'000; ++round) {
        const std::string text = maker.request();
        HeadScanner scanner({4096, 32});
        const auto found = scanner.scan(text);
        if (!std::holds_alternative<std::size_t>(found)) continue;
        const auto parsed =
            parse_request_head(std::string_view(text).substr(0, std::get<std::size_t>(found)));
        if (!std::holds_alternative<RequestHead>(parsed)) continue;
        const auto& head = std::get<RequestHead>(parsed);
        const auto framing = request_framing(head);
        if (!std::holds_alternative<Framing>(framing)) continue;
        ++forwarded;
        INFO(text);
        const std::string out = upstream_head(head, std::get<Framing>(framing), "id-1");
        const Plain plain = take_apart(out);
        REQUIRE(std::count(plain.first_line.begin(), plain.first_line.end(), ' ') == 2);
        REQUIRE(plain.first_line.substr(plain.first_line.size() - 9) == " HTTP/1.1");
        REQUIRE(plain.values("host").size() == 1);
        REQUIRE(plain.values("connection").empty());
        REQUIRE(plain.values("x-request-id").size() >= 1);
        REQUIRE(plain.values("via").back().substr(3) == " noren");
        for (const std::string_view name : k_stopped_here)
            REQUIRE(plain.values(name).empty());
        check_framing(plain, std::get<Framing>(framing));
        // What goes out is accepted by our own rules and means the same to them.
        const auto again = parse_request_head(out);
        REQUIRE(std::holds_alternative<RequestHead>(again));
        const auto framed_again = request_framing(std::get<RequestHead>(again));
        REQUIRE(std::get<Framing>(framed_again).kind == std::get<Framing>(framing).kind);
    }
    CHECK(forwarded > 5000);  // the maker does not only make rubbish
}

TEST_CASE("whatever an engine answers, the client gets a head that can be read in one way only") {
    HeadMaker maker;
    int forwarded = 0;
    for (int round = 0; round < 60'000; ++round) {
        const std::string text = maker.response();
        HeadScanner scanner({4096, 32});
        const auto found = scanner.scan(text);
        if (!std::holds_alternative<std::size_t>(found)) continue;
        const auto parsed =
            parse_response_head(std::string_view(text).substr(0, std::get<std::size_t>(found)));
        if (!std::holds_alternative<ResponseHead>(parsed)) continue;
        const auto& head = std::get<ResponseHead>(parsed);
        const auto framed = response_framing(head, maker.pick(4) == 0 ? "HEAD" : "POST");
        if (!std::holds_alternative<Framing>(framed)) continue;
        ++forwarded;
        INFO(text);
        const Framing framing = std::get<Framing>(framed);
        const bool keep_alive = framing.kind != BodyKind::until_close;
        const Plain plain = take_apart(downstream_head(head, {framing, keep_alive, 1, k_date}, "id-1"));
        REQUIRE(plain.values("connection").size() == (keep_alive ? 0u : 1u));
        for (const std::string_view name : k_stopped_here)
            if (name != "content_length") REQUIRE(plain.values(name).empty());
        check_framing(plain, framing);
    }
    CHECK(forwarded > 5000);
}

}  // namespace noren::proxy::http
