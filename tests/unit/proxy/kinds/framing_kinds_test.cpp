// Every combination of what a message can say about its length (RFC 9112 section 6), on both sides.

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/proxy/kinds/passage.hpp"

namespace noren::test {
namespace {

using Lines = std::vector<std::string_view>;

// The body below has 15 bytes as it stands and 5 in its chunk.
const std::string k_body = "5\r\nhello\r\n0\r\n\r\n";
const std::string k_next = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

const std::vector<Lines> k_lengths = {{},
                                      {"15"},
                                      {"015"},
                                      {"0"},
                                      {"5"},
                                      {"15", "15"},
                                      {"15", "015", "15"},
                                      {"15", "5"},
                                      {"5", "15", "5"},
                                      {"15", ""},
                                      {"15, 15"},
                                      {"15, 5"},
                                      {"15,"},
                                      {",15"},
                                      {"-15"},
                                      {"-0"},
                                      {"+15"},
                                      {"1 5"},
                                      {"15;"},
                                      {"15.0"},
                                      {"1_5"},
                                      {"1e1"},
                                      {"\"15\""},
                                      {"0xf"},
                                      {"f"},
                                      {""},
                                      {"99999999999"},
                                      {"9223372036854775807"},
                                      {"9223372036854775808"},
                                      {"18446744073709551615"},
                                      {"18446744073709551631"},  // 2^64 + 15
                                      {"340282366920938463463374607431768211471"}};

const std::vector<Lines> k_codings = {{},
                                      {"chunked"},
                                      {"Chunked"},
                                      {"CHUNKED"},
                                      {"\tchunked "},
                                      {"chunked", "chunked"},
                                      {"chunked", "identity"},
                                      {"identity", "chunked"},
                                      {"gzip", "chunked"},
                                      {"chunked", ""},
                                      {"", "chunked"},
                                      {"chunked, chunked"},
                                      {"chunked, gzip"},
                                      {"gzip, chunked"},
                                      {"gzip,chunked"},
                                      {"chunked,"},
                                      {",chunked"},
                                      {"gzip"},
                                      {"identity"},
                                      {"unknown"},
                                      {"xchunked"},
                                      {"chunkedx"},
                                      {"chunk ed"},
                                      {"chunked;q=1"},
                                      {"chunked x"},
                                      {"\"chunked\""},
                                      {"'chunked'"},
                                      {"\xa0"
                                       "chunked"},
                                      {"\x85"
                                       "chunked"},
                                      {""}};

std::string lines_of(std::string_view name, const Lines& values) {
    std::string text;
    for (const std::string_view value : values)
        text.append(name).append(": ").append(value).append("\r\n");
    return text;
}

/// Every combination of the two fields, in both orders.
template <typename Visit>
void for_each_framing(Visit&& visit) {
    for (const Lines& lengths : k_lengths) {
        for (const Lines& codings : k_codings) {
            const std::string length = lines_of("Content-Length", lengths);
            const std::string coding = lines_of("Transfer-Encoding", codings);
            visit(length + "X: y\r\n" + coding);
            visit(coding + length);
        }
    }
}

}  // namespace

TEST_CASE("every framing of a request, with every method and version") {
    int taken = 0;
    for (const std::string method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "BREW", "post"}) {
        for (const std::string version : {"HTTP/1.0", "HTTP/1.1", "HTTP/1.2"}) {
            for_each_framing([&](const std::string& framing) {
                const std::string head = method + " / " + version + "\r\nHost: a\r\n" + framing + "\r\n";
                taken += is_taken_as_read(head + k_body + k_next);
            });
        }
    }
    CHECK(taken > 0);
}

TEST_CASE("every framing of an answer, with every status, version and method asked with") {
    int taken = 0;
    for (const std::string status : {"100", "103", "200", "204", "205", "304", "404", "502"}) {
        for (const std::string version : {"HTTP/1.0", "HTTP/1.1"}) {
            for (const std::string_view method : {"GET", "HEAD", "POST"}) {
                for_each_framing([&](const std::string& framing) {
                    const std::string head = version + " " + status + " X\r\n" + framing + "\r\n";
                    taken += is_taken_as_read(head + k_body, method);
                });
            }
        }
    }
    CHECK(taken > 0);
}

}  // namespace noren::test
