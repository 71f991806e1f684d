#include "metrics/observe/json_sieve.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace noren::metrics;
using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

/// Keeps a (a leaf), o.x, the x of every element of list, and of how many elements many has.
const JsonSchema& schema() {
    static const JsonSchema element{{{"x", nullptr}}};
    static const JsonSchema top{
        {{"a", nullptr}, {"o", &element}, {"list", &element}, {"many", nullptr, true}}};
    return top;
}

/// What was kept, written back as one line; of leaves that are containers only whether they are empty.
std::string written(const JsonValue& value) {
    if (value.is(JsonType::string)) return "'" + std::string(*value.text()) + "'";
    if (value.is(JsonType::integer)) return value.integer() ? std::to_string(*value.integer()) : "big";
    if (value.is(JsonType::number)) return value.truthy() ? "number" : "zero";
    if (value.is(JsonType::boolean)) return value.truthy() ? "true" : "false";
    if (value.is(JsonType::null)) return "null";
    std::string inside;
    for (JsonValue child = value.first(); child; child = child.next())
        inside += (inside.empty() ? "" : " ") + written(child);
    if (inside.empty() && value.truthy()) inside = "...";
    return value.is(JsonType::array) ? "[" + inside + "]" : "{" + inside + "}";
}

std::string sieved(std::initializer_list<std::string_view> pieces) {
    JsonSieve sieve(schema());
    for (const std::string_view piece : pieces)
        sieve.feed(piece);
    return sieve.finish() ? written(sieve.root()) : "invalid";
}

/// The same however the text is cut; that is part of every expectation here.
std::string sieve_of(std::string_view text) {
    const std::string whole = sieved({text});
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        INFO("cut at " << cut << " of " << text);
        REQUIRE(sieved({text.substr(0, cut), text.substr(cut)}) == whole);
    }
    return whole;
}

/// How many elements the member "many" has, and whether one is a number; -1: it is not kept.
std::pair<std::int64_t, bool> counted(std::string_view text) {
    const auto in_two = [&](std::size_t cut) {
        JsonSieve sieve(schema());
        sieve.feed(text.substr(0, cut));
        sieve.feed(text.substr(cut));
        REQUIRE(sieve.finish());
        const auto elements = sieve.root()["many"].elements();
        return elements ? std::pair(elements->count, elements->has_number)
                        : std::pair(std::int64_t{-1}, false);
    };
    for (std::size_t cut = 0; cut < text.size(); ++cut)
        REQUIRE(in_two(cut) == in_two(text.size()));
    return in_two(text.size());
}

bool is_valid(std::string_view text) {
    return sieve_of(text) != "invalid";
}

std::string nested(std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace

TEST_CASE("sieve: keeps what the schema names and nothing else") {
    CHECK(sieve_of(R"({"a":1,"b":2,"o":{"x":"in","y":"out"}})") == "{1 {'in'}}");
    CHECK(sieve_of(R"({"b":{"a":1,"o":{"x":1}}})") == "{...}");
    CHECK(sieve_of(R"({"list":[{"x":1},{"y":2},7,"s",null,{"x":[]}]})") == "{[{1} {...} 7 's' null {[]}]}");
    CHECK(sieve_of(R"({"a":{"deep":[1,2]}, "o":5, "list":"text"})") == "{{...} 5 'text'}");
    CHECK(sieve_of(" \t\r\n{ } \n") == "{}");
}

TEST_CASE("sieve: of a leaf that is a container, whether it is empty") {
    CHECK(sieve_of(R"({"a":[]})") == "{[]}");
    CHECK(sieve_of(R"({"a":[null]})") == "{[...]}");
    CHECK(sieve_of(R"({"a":[[]]})") == "{[...]}");
    CHECK(sieve_of(R"({"a":{}})") == "{{}}");
    CHECK(sieve_of(R"({"a":{"k":null}})") == "{{...}}");
}

TEST_CASE("sieve: a counted array leaves its length behind, and what is none nothing") {
    using Count = std::pair<std::int64_t, bool>;
    CHECK(counted(R"({"many":[]})") == Count{0, false});
    CHECK(counted(R"({"many":["a","b,]",{"a":[1,2]},[3,4],null,true]})") == Count{6, false});
    CHECK(counted(R"({"many":["a",1]})") == Count{2, true});
    CHECK(counted(R"({"many":[-0.5e3]})") == Count{1, true});
    CHECK(counted(R"({"many":"a,b"})") == Count{-1, false});
    CHECK(counted(R"({"many":{"many":[1,2]}})") == Count{-1, false});
    CHECK(counted(R"({"o":{"many":[1]},"list":[{"many":["a"]}]})") == Count{-1, false});
    CHECK(sieve_of(R"({"many":["a",{"x":1}],"a":2,"list":[{"x":3}]})") == "{[...] 2 [{3}]}");
}

TEST_CASE("sieve: of a document that is an array, each element is kept") {
    CHECK(sieve_of(R"([{"a":1},{"a":2}])") == "[{1} {2}]");
    CHECK(sieve_of(R"([])") == "[]");
    CHECK(sieve_of(R"([3,{"a":2}])") == "[3 {2}]");
    CHECK(sieve_of(R"([[0.5,{"a":1}],[],{"a":2}])") == "[[...] [] {2}]");  // of a vector nothing
}

TEST_CASE("sieve: documents may be any value") {
    CHECK(sieve_of("12") == "12");
    CHECK(sieve_of("\"s\"") == "'s'");
    CHECK(sieve_of("null") == "null");
    CHECK(sieve_of("") == "invalid");
    CHECK(sieve_of(" ") == "invalid");
}

TEST_CASE("sieve: of repeated keys the last one counts") {
    JsonSieve sieve(schema());
    sieve.feed(R"({"a":1,"o":{"x":1},"a":"two","o":null})");
    REQUIRE(sieve.finish());
    CHECK(sieve.root()["a"] == "two");
    CHECK(sieve.root()["o"]);
    CHECK_FALSE(sieve.root()["o"].present());
    CHECK_FALSE(sieve.root()["list"]);
}

TEST_CASE("sieve: keys are compared after their escapes") {
    CHECK(sieve_of(R"({"\u0061":1,"o":{"\u0078":2}})") == "{1 {2}}");
    CHECK(sieve_of(R"({"\\a":1,"a\u0000":2,"":3})") == "{...}");
    CHECK(sieve_of("{\"" + std::string(100, 'a') + "\":1,\"a\":2}") == "{2}");
}

TEST_CASE("sieve: the whole grammar of RFC 8259 is checked, also of what is not kept") {
    const auto text = GENERATE(
        R"({"b":})"sv, R"({"b" 1})"sv, R"({"b":1,})"sv, R"({,"b":1})"sv, R"({b:1})"sv, R"({"b":1 "c":2})"sv,
        R"({"b":1]})"sv, R"({"b":[1})"sv, R"({"b":[1,]})"sv, R"({"b":[,1]})"sv, R"({"b":[1 2]})"sv,
        R"({"b":1}})"sv, R"({"b":1} 2)"sv, R"({"b":1)"sv, R"({"b":"x)"sv, R"({)"sv, R"([)"sv, R"(])"sv,
        R"({"b":'x'})"sv, R"({1:2})"sv, R"({"b"::1})"sv, R"({"b":tru})"sv, R"({"b":truE})"sv, R"({"b":nul)"sv,
        R"({"b":nulll})"sv, R"({"b":True})"sv, R"({"b":/**/1})"sv, R"({"b":nan})"sv, R"({"b":-NaN})"sv,
        R"({"b":Infinite})"sv, "\xef\xbb\xbf{}"sv, "{\"b\":1}\0"sv, "{\"b\":\v1}"sv);
    INFO(text);
    CHECK_FALSE(is_valid(text));
}

TEST_CASE("sieve: strings") {
    SECTION("each escape") {
        CHECK(sieve_of(R"({"a":"\"\\\/\b\f\n\r\t"})") == "{'\"\\/\b\f\n\r\t'}");
        CHECK(sieve_of(R"({"a":"\u0041\u00e9\u20AC\ud83d\ude00"})") ==
              "{'A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'}");
        CHECK(sieve_of(R"({"a":"\u0000"})") == "{'\0'}"s);
    }
    SECTION("surrogates without a partner are characters that cannot be shown") {
        CHECK(sieve_of(R"({"a":"\ud83d"})") == "{'\xef\xbf\xbd'}");
        CHECK(sieve_of(R"({"a":"\ude00"})") == "{'\xef\xbf\xbd'}");
        CHECK(sieve_of(R"({"a":"\ud83dx"})") == "{'\xef\xbf\xbdx'}");
        CHECK(sieve_of(R"({"a":"\ud83d\n"})") == "{'\xef\xbf\xbd\n'}");
        CHECK(sieve_of(R"({"a":"\ud83d\ud83d\ude00"})") == "{'\xef\xbf\xbd\xf0\x9f\x98\x80'}");
        CHECK(sieve_of(R"({"a":"\ud83d\u0041"})") ==
              "{'\xef\xbf\xbd"
              "A'}");
    }
    SECTION("wrong escapes") {
        const auto text = GENERATE(R"({"b":"\x41"})"sv, R"({"b":"\u12"})"sv, R"({"b":"\u12g4"})"sv,
                                   R"({"b":"\'"})"sv, R"({"b":"\U0041"})"sv, R"({"\q":1})"sv, R"({"b":"\)"sv);
        CHECK_FALSE(is_valid(text));
    }
    SECTION("no raw control is allowed, every other byte is, UTF-8 or not") {
        for (int byte = 0; byte < 256; ++byte) {
            const std::string text = "{\"a\":\"" + std::string(1, static_cast<char>(byte)) + "\"}";
            const bool allowed = byte >= 0x20 && byte != '"' && byte != '\\';
            INFO("byte " << byte);
            CHECK(is_valid(text) == allowed);
        }
    }
    SECTION("an empty one is not truthy, one of an escaped NUL is") {
        JsonSieve sieve(schema());
        sieve.feed(R"({"a":"","o":{"x":"\u0000"}})");
        REQUIRE(sieve.finish());
        CHECK_FALSE(sieve.root()["a"].truthy());
        CHECK(sieve.root()["a"].present());
        CHECK(sieve.root()["o"]["x"].truthy());
    }
}

TEST_CASE("sieve: of a long string the beginning is kept, cut between characters") {
    JsonSieve sieve(schema());
    sieve.feed("{\"a\":\"" + std::string(255, 'x') + "\xc3\xa9 and more\",\"o\":{\"x\":\"next\"}}");
    REQUIRE(sieve.finish());
    CHECK(sieve.root()["a"] == std::string(255, 'x'));
    CHECK(sieve.root()["o"]["x"] == "next");
}

TEST_CASE("sieve: numbers") {
    SECTION("whole ones that fit are kept exactly") {
        CHECK(sieve_of(R"({"a":0})") == "{0}");
        CHECK(sieve_of(R"({"a":-0})") == "{0}");
        CHECK(sieve_of(R"({"a":-17})") == "{-17}");
        CHECK(sieve_of(R"({"a":9223372036854775807})") == "{9223372036854775807}");
        CHECK(sieve_of(R"({"a":-9223372036854775807})") == "{-9223372036854775807}");
        CHECK(sieve_of(R"({"a":9223372036854775808})") == "{big}");
        CHECK(sieve_of("{\"a\":1" + std::string(400, '0') + "}") == "{big}");
    }
    SECTION("others only as zero or not; 3.0 is no count") {
        CHECK(sieve_of(R"({"a":3.0})") == "{number}");
        CHECK(sieve_of(R"({"a":0.0})") == "{zero}");
        CHECK(sieve_of(R"({"a":0e7})") == "{zero}");
        CHECK(sieve_of(R"({"a":-0.5e-3})") == "{number}");
        CHECK(sieve_of(R"({"a":1E+2})") == "{number}");
    }
    SECTION("what Python sends for what JSON has no word for") {
        CHECK(sieve_of(R"({"a":NaN})") == "{number}");
        CHECK(sieve_of(R"({"a":Infinity,"o":{"x":-Infinity}})") == "{number {number}}");
    }
    SECTION("wrong ones") {
        const auto text =
            GENERATE("01"sv, "-"sv, "+1"sv, "1."sv, ".5"sv, "1.e3"sv, "1e"sv, "1e+"sv, "--1"sv, "0x10"sv,
                     "1a"sv, "-a"sv, "1.2.3"sv, "1e5.0"sv, "1_000"sv, "-I"sv, "-Infinite"sv);
        INFO(text);
        CHECK_FALSE(is_valid("{\"b\":" + std::string(text) + "}"));
        CHECK_FALSE(is_valid(text));
    }
}

TEST_CASE("sieve: nesting has a bound") {
    CHECK(is_valid(nested(512)));
    JsonSieve sieve(schema());
    sieve.feed(nested(513));
    CHECK_FALSE(sieve.finish());
    CHECK(sieve.failed());
}

TEST_CASE("sieve: what is to be kept has a bound, what passes by has none") {
    JsonSieve sieve(schema());
    SECTION("ten thousand elements to keep") {
        std::string list;
        for (int i = 0; i < 10'000; ++i)
            list += "{\"x\":\"some text\"},";
        sieve.feed("{\"list\":[" + list + "0],\"a\":1}");
        CHECK(sieve.finish());
        CHECK(sieve.overflowed());
        // What stands outside of the list is seen all the same.
        CHECK(sieve.root()["a"].integer() == 1);
    }
    SECTION("a million numbers not to keep") {
        sieve.feed("{\"b\":[");
        for (int i = 0; i < 1'000'000; ++i)
            sieve.feed("-0.0123,");
        sieve.feed("0],\"a\":1}");
        CHECK(sieve.finish());
        CHECK(sieve.root()["a"].integer() == 1);
    }
    sieve.reset();
    sieve.feed(R"({"a":2})");
    REQUIRE(sieve.finish());
    CHECK(sieve.root()["a"].integer() == 2);
}

TEST_CASE("sieve: after a fault nothing helps but a reset") {
    JsonSieve sieve(schema());
    sieve.feed("{]");
    sieve.feed("{}");
    CHECK_FALSE(sieve.finish());
    sieve.reset();
    CHECK(sieve.blank());
    sieve.feed(" \n");
    CHECK(sieve.blank());
    sieve.feed("{");
    CHECK_FALSE(sieve.blank());
}
