#include "tests/bench/load/request_source.hpp"

#include <cmath>
#include <map>
#include <sstream>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

namespace {

using namespace load;

std::uint32_t words_in(const std::string& text) {
    std::istringstream in(text);
    std::uint32_t count = 0;
    for (std::string word; in >> word;)
        ++count;
    return count;
}

}  // namespace

TEST_CASE("the same seed gives the same requests, another seed others") {
    Options options;
    options.prompt_words = {5, 50};
    options.leave = 0.5;
    RequestSource first(options), second(options);
    Options different = options;
    different.seed = 2;
    RequestSource third(different);
    for (int i = 0; i < 50; ++i) {
        const Request a = first.next(), b = second.next(), c = third.next();
        CHECK(a.id == "load-1-" + std::to_string(i));
        CHECK(a.id == b.id);
        CHECK(a.body == b.body);
        CHECK(a.leave_after == b.leave_after);
        CHECK(a.id != c.id);
        CHECK(a.body != c.body);
    }
    CHECK(first.issued() == 50);
}

TEST_CASE("requests keep to their ranges and chances, and reach both ends") {
    Options options;
    options.max_tokens = {10, 12};
    options.prompt_words = {3, 4};
    options.leave = 0.25;
    options.leave_within = std::chrono::milliseconds(100);
    options.slow = 0.1;
    RequestSource source(options);
    std::map<std::uint32_t, int> tokens, words;
    int leaving = 0, slow = 0;
    for (int i = 0; i < 4000; ++i) {
        const Request request = source.next();
        ++tokens[request.tokens.value()];
        const auto body = boost::json::parse(request.body);
        ++words[words_in(std::string(body.at_pointer("/messages/0/content").as_string()))];
        leaving += request.leave_after.has_value();
        slow += request.slow;
        if (request.leave_after) CHECK(request.leave_after->count() <= 100'000);
    }
    CHECK(tokens.size() == 3);
    CHECK(tokens.begin()->first == 10);
    CHECK(words.size() == 2);
    CHECK(words.begin()->first == 3);
    CHECK(std::abs(leaving - 1000) < 120);  // 4 standard deviations are 110
    CHECK(std::abs(slow - 400) < 80);
}

TEST_CASE("arrivals are a Poisson process: mean and variance of the gaps") {
    Arrivals arrivals(200, 42);
    double sum = 0, squares = 0;
    constexpr int k_count = 50'000;
    for (int i = 0; i < k_count; ++i) {
        const double gap = std::chrono::duration<double>(arrivals.next_gap()).count();
        sum += gap;
        squares += gap * gap;
    }
    const double mean = sum / k_count;
    CHECK(mean == Approx(0.005).epsilon(0.02));
    CHECK(std::sqrt(squares / k_count - mean * mean) == Approx(0.005).epsilon(0.03));
}

TEST_CASE("prompts from a file are used in turn, bodies as they are") {
    std::istringstream in(
        "{\"prompt\": \"one\"}\n\n{\"body\": {\"x\": [1, \"y\"]}}\n{\"body\": \"not even JSON\"}\r\n");
    Options options;
    options.prompts = read_prompts(in, "p.jsonl");
    REQUIRE(options.prompts.size() == 3);
    RequestSource source(options);
    for (int round = 0; round < 2; ++round) {
        const Request words = source.next();
        CHECK(boost::json::parse(words.body).at_pointer("/messages/0/content").as_string() == "one");
        CHECK(words.tokens == 64U);
        const Request body = source.next();
        CHECK(body.body == R"({"x":[1,"y"]})");
        CHECK_FALSE(body.tokens);
        CHECK(source.next().body == "not even JSON");
    }
}

TEST_CASE("a mistake in a prompt file names its line") {
    const auto problem = [](const std::string& text) {
        std::istringstream in(text);
        try {
            read_prompts(in, "p.jsonl");
        } catch (const std::runtime_error& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    CHECK_THAT(problem("{\"prompt\": \"a\"}\n\n{oops\n"), Catch::StartsWith("p.jsonl:3: expected"));
    CHECK_THAT(problem("{\"prompt\": 7}"), Catch::StartsWith("p.jsonl:1: expected"));
    CHECK_THAT(problem("[]"), Catch::StartsWith("p.jsonl:1: expected"));
    CHECK(problem("\n \n") == "p.jsonl: holds no prompt");
}
