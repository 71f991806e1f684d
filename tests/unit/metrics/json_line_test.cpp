#include "metrics/json_line.hpp"

#include <limits>
#include <random>
#include <regex>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

namespace noren::metrics {
namespace {

std::string as_json(std::string_view value) {
    JsonLine line;
    line.add("s", value);
    return std::move(line).finish();
}

TEST_CASE("members of every kind") {
    JsonLine line;
    line.add("a", std::string_view("x")).add("b", std::int64_t{-7}).add("c", true).add("d", 1.5);
    line.add("e", std::optional<std::int64_t>()).add("f", std::optional<std::int64_t>(0));
    line.add(std::string_view("given"), false).add("literal", "text");
    CHECK(std::move(line).finish() ==
          R"({"a":"x","b":-7,"c":true,"d":1.500,"f":0,"given":false,"literal":"text"})");
    CHECK(JsonLine().finish() == "{}");
}

TEST_CASE("numbers that JSON cannot say are null") {
    const auto number = [](double value) {
        JsonLine line;
        line.add("n", value);
        return std::move(line).finish();
    };
    CHECK(number(std::numeric_limits<double>::infinity()) == R"({"n":null})");
    CHECK(number(std::numeric_limits<double>::quiet_NaN()) == R"({"n":null})");
    CHECK(number(1e300) == R"({"n":null})");
    CHECK(number(0.0004) == R"({"n":0.000})");
    CHECK(number(123456789.0125) == R"({"n":123456789.013})");
}

TEST_CASE("strings are escaped as RFC 8259 wants it") {
    CHECK(as_json("a\"b\\c/d") == R"({"s":"a\"b\\c/d"})");
    CHECK(as_json(std::string_view("\0\x01\n\x1f\x7f", 5)) == "{\"s\":\"\\u0000\\u0001\\u000a\\u001f\x7f\"}");
    CHECK(as_json("ラーメン \xf0\x9f\x8d\x9c") == "{\"s\":\"ラーメン \xf0\x9f\x8d\x9c\"}");
}

/// One for each maximal part of a sequence (Unicode 16, 3.9, table 3-8).
TEST_CASE("what is no UTF-8 becomes the replacement character") {
    struct Case {
        std::string_view bytes;
        const char* text;
    };
    const auto c =
        GENERATE(Case{"a\xff"
                      "b",
                      R"(a\ufffdb)"},
                 Case{"\x80", R"(\ufffd)"}, Case{"\xc0\xaf", R"(\ufffd\ufffd)"}, Case{"\xc3", R"(\ufffd)"},
                 Case{"\xe0\x80\x80", R"(\ufffd\ufffd\ufffd)"}, Case{"\xed\xa0\x80", R"(\ufffd\ufffd\ufffd)"},
                 Case{"\xf4\x90\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"}, Case{"\xf0\x9f\x8d", R"(\ufffd)"},
                 Case{"\xe3\x83"
                      "a",
                      R"(\ufffda)"},
                 Case{"\xf5\x80\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"});
    CHECK(as_json(c.bytes) == "{\"s\":\"" + std::string(c.text) + "\"}");
}

/// RFC 3629, written from its grammar (UTF8-octets), apart from the code under test.
bool is_utf8(const std::string& text) {
    static const std::regex grammar(
        "(?:[\\x00-\\x7f]|[\\xc2-\\xdf][\\x80-\\xbf]|\\xe0[\\xa0-\\xbf][\\x80-\\xbf]|"
        "[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}|\\xed[\\x80-\\x9f][\\x80-\\xbf]|"
        "\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}|[\\xf1-\\xf3][\\x80-\\xbf]{3}|\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2})"
        "*");
    return std::regex_match(text, grammar);
}

TEST_CASE("random bytes come out as one JSON string of valid UTF-8") {
    REQUIRE(is_utf8("ラーメン \xf0\x9f\x8d\x9c"));
    REQUIRE_FALSE(is_utf8("\xff"));
    REQUIRE_FALSE(is_utf8("\xe0\x80\x80"));
    std::mt19937 random(11);
    for (int round = 0; round < 3000; ++round) {
        std::string bytes(random() % 60, '\0');
        for (char& c : bytes)
            c = static_cast<char>(random() % 3 == 0 ? random() % 128 : 128 + random() % 128);
        const std::string json = as_json(bytes);
        INFO(json);
        REQUIRE(json.size() >= 8);
        const std::string inside = json.substr(6, json.size() - 8);
        for (std::size_t i = 0; i < inside.size(); ++i) {
            CHECK(static_cast<unsigned char>(inside[i]) >= 0x20);
            CHECK(inside[i] != '"');
            if (inside[i] == '\\') i += inside[i + 1] == 'u' ? 5 : 1;
        }
        CHECK(is_utf8(inside));
    }
}

TEST_CASE("a string is of bounded length") {
    CHECK(as_json(std::string(100'000, 'x')).size() < 1100);
    CHECK(as_json(std::string(100'000, '\n')).size() < 6200);
}

TEST_CASE("time is RFC 3339 in UTC with milliseconds") {
    CHECK(std::regex_match(rfc3339_now().str(),
                           std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z)")));
}

}  // namespace
}  // namespace noren::metrics
