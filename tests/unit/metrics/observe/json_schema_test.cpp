#include "metrics/observe/json_schema.hpp"

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "metrics/observe/answer_schema.hpp"

using namespace noren::metrics;

TEST_CASE("schema: finds its keys and nothing else") {
    const JsonSchema schema({{"a", nullptr},
                             {"id", nullptr},
                             {"index", nullptr},
                             {"finish_reason", nullptr},
                             {"completion_tokens_details", nullptr}});
    for (const std::string key : {"a", "id", "index", "finish_reason", "completion_tokens_details"}) {
        INFO(key);
        REQUIRE(schema.find(key));
        CHECK(schema.find(key)->key.text() == key);
        // One letter other, missing or more is another key.
        for (std::size_t i = 0; i < key.size(); ++i) {
            std::string other = key;
            other[i] = 'Z';
            CHECK_FALSE(schema.find(other));
        }
        CHECK_FALSE(schema.find(key + "s"));
        CHECK_FALSE(schema.find(key.substr(0, key.size() - 1)));
        CHECK_FALSE(schema.find(key + std::string(256, 'x')));
    }
    CHECK_FALSE(schema.find(""));
    CHECK_FALSE(schema.find(std::string(1, '\0')));
}

TEST_CASE("schema: a key with the mark of another is not taken for it") {
    const JsonSchema schema({{"finish_reason", nullptr}, {"total", nullptr}});
    // Same length, first, middle and last byte.
    REQUIRE(key_mark("fxxxxx_xxxxxn") == key_mark("finish_reason"));
    CHECK_FALSE(schema.find("fxxxxx_xxxxxn"));
    REQUIRE(key_mark("txtxl") == key_mark("total"));
    CHECK_FALSE(schema.find("txtxl"));
    // The length in the mark is only its last eight bits.
    std::string longer = "t" + std::string(259, 'x') + "l";
    longer[longer.size() / 2] = 't';
    REQUIRE(key_mark(longer) == key_mark("total"));
    CHECK_FALSE(schema.find(longer));
}

TEST_CASE("schema: keys that could not be told apart are a fault of the program") {
    CHECK_THROWS_AS(JsonSchema({{"total", nullptr}, {"txtxl", nullptr}}), std::logic_error);
    static const std::string overlong(64, 'k');
    CHECK_THROWS_AS(JsonSchema({{JsonKey(std::string_view(overlong)), nullptr}}), std::logic_error);
    CHECK_NOTHROW(answer_schema());
    CHECK_NOTHROW(request_schema());
}

TEST_CASE("schema: a hundred keys all have their place") {
    static std::vector<std::string> names;
    std::vector<JsonSchema::Member> members;
    names.reserve(100);
    for (std::size_t i = 0; i < 100; ++i)
        names.push_back(static_cast<char>('A' + i / 10) + std::string(i % 10, 'k'));
    for (const std::string& name : names)
        members.push_back({JsonKey(std::string_view(name)), nullptr});
    const JsonSchema schema(members);
    for (const std::string& name : names) {
        INFO(name);
        REQUIRE(schema.find(name));
        CHECK(schema.find(name)->key.text() == name);
    }
}
