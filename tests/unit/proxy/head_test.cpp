#include "proxy/http/head.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/byte_set.hpp"

namespace noren::proxy::http {
namespace {

using namespace std::string_literals;
using test::ByteSet;

constexpr HeadLimits k_limits{4096, 16};

/// What becomes of the bytes when they come in these pieces: 0 accepted, 1 more is awaited, else the status.
template <typename Parse>
int verdict_of(const std::vector<std::string_view>& pieces, Parse&& parse, const HeadLimits& limits) {
    HeadScanner scanner(limits);
    std::string buffer;
    for (const std::string_view piece : pieces) {
        buffer.append(piece);
        const auto found = scanner.scan(buffer);
        if (const auto* error = std::get_if<HeadError>(&found)) return error->status;
        const auto* size = std::get_if<std::size_t>(&found);
        if (!size) continue;
        const auto parsed = parse(std::string_view(buffer).substr(0, *size));
        const auto* error = std::get_if<HeadError>(&parsed);
        return error ? error->status : 0;
    }
    return 1;
}

int request_verdict(std::string_view text, const HeadLimits& limits = k_limits) {
    return verdict_of({text}, parse_request_head, limits);
}
int response_verdict(std::string_view text) {
    return verdict_of({text}, parse_response_head, k_limits);
}

/// One byte value after the other put into a text; the set of those with which it is accepted.
ByteSet accepted_bytes(std::string_view before, std::string_view behind,
                       const std::function<int(std::string_view)>& verdict) {
    ByteSet accepted;
    for (int byte = 0; byte < 256; ++byte) {
        const std::string text =
            std::string(before) + static_cast<char>(byte) + std::string(behind) + "\r\n\r\n";
        if (verdict(text) == 0) accepted.set(static_cast<std::size_t>(byte));
    }
    return accepted;
}

ByteSet accepted_in_request(std::string_view before, std::string_view behind) {
    return accepted_bytes(before, behind, [](std::string_view text) { return request_verdict(text); });
}
ByteSet accepted_in_response(std::string_view before, std::string_view behind) {
    return accepted_bytes(before, behind, response_verdict);
}

struct Sample {
    std::string text;
    int verdict;
};

const std::vector<Sample> k_requests = {
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"GET / HTTP/1.0\r\n\r\n", 0},
    {"GET / HTTP/1.7\r\nHost: a\r\n\r\n", 0},
    {"get / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
    {"OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n", 0},
    {"POST /v1/x?a=b HTTP/1.1\r\nhOsT: [::1]:80\r\nX-Empty:\r\nX-Blank: \t \r\nX: \t v w \t\r\n\r\n", 0},
    {"GET http://a.test/x HTTP/1.1\r\nHost: b\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: caf\xc3\xa9\r\n\r\n", 0},
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", 400},
    {"GET / HTTP/1.0\r\nHost: a/x\r\n\r\n", 400},
    {"GET http://a.test/x HTTP/1.1\r\n\r\n", 400},
    {"GET /\r\n\r\n", 400},
    {"GET\r\n\r\n", 400},
    {"\r\n\r\n", 400},
    {" GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400},
    {"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET / http/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/11\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
    {"GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505},
    {"PRI * HTTP/2.0\r\n\r\n", 505},
    {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405},
    {"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405},
    {std::string(33, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
    {"GET / HTTP/1.1\nHost: a\n\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s, 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\n\"q\": b\r\n\r\n", 400},
    {"\x16\x03\x01\x02", 400},
    {"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a\r\n", 1},
    {"GET / HTTP/1.1\r\nHost: a\r\n\r", 1},
    {"\r", 1},
};

const std::vector<Sample> k_responses = {
    {"HTTP/1.1 200 OK\r\n\r\n", 0},
    {"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n", 0},
    {"HTTP/1.1 200 \r\n\r\n", 0},
    {"HTTP/1.1 200\r\n\r\n", 0},
    {"HTTP/1.1 599 caf\xe9 au lait\r\n\r\n", 0},
    {"HTTP/1.1  200 OK\r\n\r\n", 502},
    {"HTTP/1.1 2000 OK\r\n\r\n", 502},
    {"HTTP/1.1 20 OK\r\n\r\n", 502},
    {"HTTP/1.1 099 OK\r\n\r\n", 502},
    {"HTTP/1.1 600 OK\r\n\r\n", 502},
    {"HTTP/1.1 +20 OK\r\n\r\n", 502},
    {"HTTP/2.0 200 OK\r\n\r\n", 502},
    {"HTTP/1.1\r\n\r\n", 502},
    {"ICY 200 OK\r\n\r\n", 502},
    {"\r\n\r\n", 502},
    {"HTTP/1.1 200 O\0K\r\n\r\n"s, 502},
    {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", 502},
    {"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", 502},
};

}  // namespace

TEST_CASE("request heads are taken or refused as the grammar says") {
    for (const Sample& sample : k_requests) {
        INFO(sample.text);
        CHECK(request_verdict(sample.text) == sample.verdict);
    }
}

TEST_CASE("answer heads are taken or refused as the grammar says") {
    for (const Sample& sample : k_responses) {
        INFO(sample.text);
        CHECK(response_verdict(sample.text) == sample.verdict);
    }
}

TEST_CASE("where the bytes are cut makes no difference to a head's verdict") {
    for (const Sample& sample : k_requests) {
        const std::string_view text = sample.text;
        std::vector<std::string_view> bytewise;
        for (std::size_t cut = 0; cut < text.size(); ++cut) {
            INFO(sample.text << " cut at " << cut);
            CHECK(verdict_of({text.substr(0, cut), text.substr(cut)}, parse_request_head, k_limits) ==
                  sample.verdict);
            bytewise.push_back(text.substr(cut, 1));
        }
        INFO(sample.text << " byte by byte");
        CHECK(verdict_of(bytewise, parse_request_head, k_limits) == sample.verdict);
    }
}

TEST_CASE("a request head is read into its parts") {
    const std::string text =
        "POST http://Shop.test:81/v1/x?q=1 HTTP/1.1\r\nHost: other\r\nAccept: */*\r\nACCEPT:\tb \r\n\r\n";
    const auto parsed = parse_request_head(text);
    const auto& head = std::get<RequestHead>(parsed);
    CHECK(head.method == "POST");
    CHECK(head.target == "/v1/x?q=1");
    CHECK(head.authority == "Shop.test:81");
    CHECK(head.minor == 1);
    REQUIRE(head.fields.all().size() == 3);
    CHECK(head.fields.all()[1].name == "Accept");
    CHECK(head.fields.all()[2].name == "ACCEPT");
    CHECK(head.fields.all()[2].value == "b");
    CHECK(head.fields.count("accept") == 2);
    CHECK(head.fields.value("accept") == "*/*");
    CHECK(head.fields.value("absent").empty());
}

TEST_CASE("an answer head is read into its parts") {
    const auto parsed = parse_response_head("HTTP/1.0 503 Try later \r\nRetry-After: 3\r\n\r\n");
    const auto& head = std::get<ResponseHead>(parsed);
    CHECK(head.status == 503);
    CHECK(head.reason == "Try later ");
    CHECK(head.minor == 0);
    CHECK(head.fields.value("retry-after") == "3");
}

TEST_CASE("list fields are searched over all their lines") {
    Fields fields;
    fields.add("Connection", "a ,\tClose,,");
    fields.add("connection", "keep-alive");
    CHECK(fields.lists("CONNECTION", "close"));
    CHECK(fields.lists("connection", "Keep-Alive"));
    CHECK(fields.lists("connection", "a"));
    CHECK_FALSE(fields.lists("connection", "keep"));
    CHECK_FALSE(fields.lists("connection", ""));
    CHECK_FALSE(fields.lists("te", "a"));
}

// The expected sets are written down from RFC 9110 and 9112, not from the code's tables.

TEST_CASE("every byte value in every place of a request head") {
    const ByteSet digits = test::bytes_of("0123456789");
    const ByteSet letters = test::bytes_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");  // ALPHA
    const ByteSet tchar = digits | letters | test::bytes_of("!#$%&'*+-.^_`|~");  // RFC 9110 5.6.2
    const ByteSet field_text = test::bytes_between(0x20, 0x7e) | test::bytes_between(0x80, 0xff) |
                               test::bytes_of("\t");                                 // RFC 9110 5.5
    const ByteSet reg_name = digits | letters | test::bytes_of("-._~!$&'()*+,;=%");  // RFC 3986 3.2.2
    const ByteSet path_or_query = reg_name | test::bytes_of(":@/?");                 // RFC 3986 3.3, 3.4
    const ByteSet tolerated = test::bytes_of("[]{}|^");                              // target.cpp says why
    const std::string rest = "\r\nHost: a";

    CHECK(accepted_in_request("G", "T / HTTP/1.1" + rest) == tchar);
    CHECK(accepted_in_request("", "ET / HTTP/1.1" + rest) == tchar);
    CHECK(accepted_in_request("GET /a", "b HTTP/1.1" + rest) == (path_or_query | tolerated));
    CHECK(accepted_in_request("GET /?a", "b HTTP/1.1" + rest) == (path_or_query | tolerated));
    CHECK(accepted_in_request("GET ", " HTTP/1.1" + rest) == test::bytes_of("/"));
    CHECK(accepted_in_request("GET /", "HTTP/1.1" + rest) == test::bytes_of(" "));
    CHECK(accepted_in_request("GET / HTT", "/1.1" + rest) == test::bytes_of("P"));
    CHECK(accepted_in_request("GET / HTTP/", ".1" + rest) == test::bytes_of("1"));
    CHECK(accepted_in_request("GET / HTTP/1", "1" + rest) == test::bytes_of("."));
    CHECK(accepted_in_request("GET / HTTP/1.", rest) == digits);
    CHECK(accepted_in_request("GET / HTTP/1.1", rest).none());
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a", "b") == reg_name);
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a:", "") == (digits | test::bytes_of(" \t")));
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a\r\n", "X: v") == tchar);
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a\r\nX", "Y: v") == (tchar | test::bytes_of(":")));
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a\r\nX:", "v") == field_text);
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a\r\nX: v", "w") == field_text);
    CHECK(accepted_in_request("GET / HTTP/1.1\r\nHost: a\r\nX: v", "") == field_text);
}

TEST_CASE("every byte value in every place of an answer head") {
    const ByteSet text = test::bytes_between(0x20, 0x7e) | test::bytes_between(0x80, 0xff) |
                         test::bytes_of("\t");  // RFC 9112 4: HTAB / SP / VCHAR / obs-text
    CHECK(accepted_in_response("HTTP/1.", " 200 OK") == test::bytes_of("0123456789"));
    CHECK(accepted_in_response("HTTP/1.1 ", "00 OK") == test::bytes_of("12345"));
    CHECK(accepted_in_response("HTTP/1.1 2", "0 OK") == test::bytes_of("0123456789"));
    CHECK(accepted_in_response("HTTP/1.1 20", " OK") == test::bytes_of("0123456789"));
    CHECK(accepted_in_response("HTTP/1.1 200", "OK") == test::bytes_of(" "));
    CHECK(accepted_in_response("HTTP/1.1 200 O", "K") == text);
    CHECK(accepted_in_response("HTTP/1.1 200 OK\r\nX: v", "w") == text);
}

TEST_CASE("the size limit counts the head to its last byte") {
    const std::string head = "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(100, 'v') + "\r\n\r\n";
    CHECK(request_verdict(head, {head.size(), 16}) == 0);
    CHECK(request_verdict(head, {head.size() - 1, 16}) == 431);
    CHECK(request_verdict("GET /" + std::string(200, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", {100, 16}) ==
          414);
    CHECK(request_verdict("GET /" + std::string(200, 'x'), {100, 16}) == 414);
    CHECK(request_verdict("GET / HTTP/1.1\r\nX: " + std::string(200, 'x'), {100, 16}) == 431);
    // An unfinished head is refused with the first byte too many, not later.
    const std::string unfinished = "GET / HTTP/1.1\r\nX: " + std::string(81, 'x');
    CHECK(request_verdict(unfinished, {unfinished.size(), 16}) == 1);
    CHECK(request_verdict(unfinished, {unfinished.size() - 1, 16}) == 431);
    // What is behind the head does not count.
    CHECK(request_verdict(head + std::string(9999, 'b'), {head.size(), 16}) == 0);
}

TEST_CASE("the size limit does not start anew with a field or a read") {
    HeadScanner scanner({1000, 100'000});
    std::string buffer = "GET / HTTP/1.1\r\nA";
    while (std::holds_alternative<std::monostate>(scanner.scan(buffer)) && buffer.size() < 5000)
        buffer += ": b\r\nA";  // each piece ends one byte into the next line
    CHECK(buffer.size() > 1000);
    CHECK(buffer.size() < 1010);
}

TEST_CASE("the number of fields is limited") {
    std::string fields;
    for (int i = 0; i < 15; ++i)
        fields += "A: b\r\n";
    CHECK(request_verdict("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n") == 0);
    CHECK(request_verdict("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "C: d\r\n\r\n") == 431);
}

TEST_CASE("the number of connection options is limited, over all lines together") {
    const auto refused = [](const std::string& fields) {
        const auto request = parse_request_head("GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
        const auto answer = parse_response_head("HTTP/1.1 200 OK\r\n" + fields + "\r\n");
        const auto* const error = std::get_if<HeadError>(&request);
        CHECK(std::holds_alternative<HeadError>(answer) == (error != nullptr));
        return error ? error->status : 0;
    };
    const auto options = [](int n) {
        std::string list;
        for (int i = 0; i < n; ++i)
            list += "a,";
        return "Connection: " + list + "\r\n";
    };
    CHECK(refused(options(64)) == 0);
    CHECK(refused(options(65)) == 431);
    CHECK(refused(options(32) + "x: y\r\n" + options(32)) == 0);
    CHECK(refused(options(32) + "x: y\r\n" + options(33)) == 431);
    CHECK(refused("Connection: " + std::string(5000, ',') + "close\r\n") == 0);
}

TEST_CASE("an empty line before a request is told from a head") {
    CHECK(leading_empty_line("\r\nGET") == 2);
    CHECK(leading_empty_line("\r\n") == 2);
    CHECK(leading_empty_line("\r") == 0);
    CHECK(leading_empty_line("GET") == 0);
    CHECK(leading_empty_line("") == 0);
}

}  // namespace noren::proxy::http
