// Every byte value in every position of a chunked body, every size and every form of extension, on both
// sides.

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/proxy/kinds/passage.hpp"

namespace noren::test {
namespace {

const std::string k_request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string k_response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// On both sides; which must be of one mind.
bool is_taken(const std::string& body) {
    const bool as_request = is_taken_as_read(k_request + body + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    const bool as_response = is_taken_as_read(k_response + body + "HTTP/1.1 200 OK\r\n\r\n", "GET");
    REQUIRE(as_request == as_response);
    return as_request;
}

}  // namespace

TEST_CASE("every byte value in every position of a chunked body") {
    const std::string body =
        "4;ab=\"c \\\"\\\\\";f = g ;h\r\nwxyz\r\n00a\r\n0123456789\r\n0;i\r\nX-Sum: 1\r\n\r\n";
    REQUIRE(is_taken(body));
    int taken = 0;
    for_each_spoiled(body, [&](const std::string& spoiled) { taken += is_taken(spoiled); });
    CHECK(taken > 5000);
}

TEST_CASE("every length of a chunk size, with leading zeros and near every power of two") {
    const std::string data(0x21, 'd');
    for (std::size_t zeros = 0; zeros < 20; ++zeros) {
        const std::string size = std::string(zeros, '0') + "21";
        CHECK(is_taken(size + "\r\n" + data + "\r\n" + std::string(zeros + 1, '0') + "\r\n\r\n") ==
              (zeros + 2 <= 16));
    }
    for (const std::string first : {"", "1", "2", "4", "7", "8", "f", "10", "7f", "80", "ff", "100"}) {
        for (const char filler : {'0', 'f'}) {
            for (std::size_t digits = 0; digits < 40; ++digits) {
                const std::string size = first + std::string(digits, filler);
                is_taken(size + "\r\n" + data + "\r\n0\r\n\r\n");
                is_taken(size + "21\r\n" + data + "\r\n0\r\n\r\n");  // 0x21 once it has wrapped around
            }
        }
    }
}

TEST_CASE("every pair of forms of a chunk extension") {
    const std::vector<std::string_view> forms = {
        "",          ";a",         ";a=b",        "; a = b",    " ;a",       "\t;\ta\t=\tb", ";a=\"\"",
        ";a=\"b\"",  ";a=\"b;c\"", ";a=\"\\\"\"", ";a=\"\\b\"", ";a=\"\\",   ";a=\"b",       ";a=\"b\"c",
        ";a=\"\r\"", ";a=\"\n\"",  ";a=\"\r\n\"", ";\"a\"",     ";=b",       ";a=",          ";a==b",
        ";",         ";;",         " ",           "\t",         ";a ",       ";a b",         ";a=b ",
        ",a",        "=b",         "a",           ";a\xa0",     ";a=\"\xa0", ";a=\"\xa0\"",  "\r",
        "\n",        "\v",         ";a=b\n",      ";a=b\r",     ";a=(b)",    ";a=b,c",       ";a=\x7f"};
    int taken = 0;
    for (const std::string_view first : forms)
        for (const std::string_view second : forms)
            for (const std::string size : {"1", "0"})
                taken += is_taken(size + std::string(first) + std::string(second) + "\r\n" +
                                  (size == "1" ? "x\r\n0\r\n\r\n" : "\r\n"));
    CHECK(taken > 100);
    for (std::size_t length = 240; length < 270; ++length)
        is_taken("1;" + std::string(length, 'e') + "\r\nx\r\n0\r\n\r\n");
}

TEST_CASE("every way to end the lines of a chunked body") {
    const std::vector<std::string> ends = {"\r\n", "\n", "\r", "\n\r", "\r\r\n", "\r\n\n", " \r\n", ""};
    for (const std::string& size : ends)
        for (const std::string& data : ends)
            for (const std::string& last : ends)
                for (const std::string& body : ends)
                    CHECK(is_taken("1" + size + "x" + data + "0" + last + body) ==
                          (size == "\r\n" && data == "\r\n" && (last + body).starts_with("\r\n\r\n")));
}

}  // namespace noren::test
