// Events that are recognised say what they would say if they were parsed.

#include "metrics/observe/event_pattern.hpp"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "metrics/observe/answer_schema.hpp"
#include "metrics/observe/response_observer.hpp"

using namespace noren::metrics;

namespace {

constexpr std::string_view k_chat =
    R"({"id":"c-1","created":1760000000,"model":"m","choices":[{"index":0,"delta":{"content":"soup"},"finish_reason":null}]})";

EventPattern pattern_of(std::string_view document) {
    JsonSieve sieve(answer_schema());
    sieve.feed_borrowed(document);
    REQUIRE(sieve.finish());
    EventPattern pattern;
    pattern.learn(document, sieve.loose());
    return pattern;
}

std::string with(std::string_view what, std::string_view instead) {
    std::string document(k_chat);
    const std::size_t place = document.find(what);
    REQUIRE(place != std::string::npos);
    return document.replace(place, what.size(), instead);
}

Observation observed(const std::vector<std::string>& events, std::size_t piece, std::string_view type) {
    ResponseObserver observer(200, type, "");
    for (const std::string& event : events)
        for (std::size_t at = 0; at < event.size(); at += piece)
            observer.feed(std::string_view(event).substr(at, piece));
    observer.finish();
    return observer.observation();
}

}  // namespace

TEST_CASE("pattern: text, ids and times may be others") {
    EventPattern pattern = pattern_of(k_chat);
    CHECK(pattern.matches(k_chat));
    CHECK(pattern.matches(with("soup", "a noren")));
    CHECK(pattern.matches(with("soup", R"(\"a\n\\)")));
    CHECK(pattern.matches(with("soup", "\xe3\x81\xae\xff")));
    CHECK(pattern.matches(with("1760000000", "1760000001")));
    CHECK(pattern.matches(with("1760000000", "-1.5e7")));
    CHECK(pattern.matches(with("c-1", "")));
}

TEST_CASE("pattern: whatever could mean something else is no match") {
    EventPattern pattern = pattern_of(k_chat);
    CHECK_FALSE(pattern.matches(with("soup", "")));
    CHECK_FALSE(pattern.matches(with("soup", R"(\u0041)")));  // not looked into
    CHECK_FALSE(pattern.matches(with("soup", R"(\x)")));
    CHECK_FALSE(pattern.matches(with("soup", "a\tb")));
    CHECK_FALSE(pattern.matches(with("soup", std::string(1, '\0'))));
    CHECK_FALSE(pattern.matches(with("soup", R"(soup","role":"a)")));
    CHECK_FALSE(pattern.matches(with("1760000000", "01")));
    CHECK_FALSE(pattern.matches(with("1760000000", "1.")));
    CHECK_FALSE(pattern.matches(with("1760000000", "")));
    CHECK_FALSE(pattern.matches(with("1760000000", "\"1\"")));
    CHECK_FALSE(pattern.matches(with(R"("m")", R"("n")")));
    CHECK_FALSE(pattern.matches(with("null", R"("stop")")));
    CHECK_FALSE(pattern.matches(with("index\":0", "index\":1")));
    CHECK_FALSE(pattern.matches(with("content", "context")));
    CHECK_FALSE(pattern.matches(std::string(k_chat) + " "));
    CHECK_FALSE(pattern.matches(k_chat.substr(0, k_chat.size() - 1)));
    CHECK_FALSE(pattern.matches(""));
    for (std::size_t cut = 0; cut < k_chat.size(); ++cut)
        CHECK_FALSE(pattern.matches(k_chat.substr(0, cut)));
}

TEST_CASE("pattern: what has too much in it is not learnt") {
    std::string ids;
    for (int i = 0; i < 40; ++i)
        ids += "\"x" + std::to_string(i) + "\":" + std::to_string(i) + ",";
    EventPattern many = pattern_of("{" + ids + R"("choices":[{"delta":{"content":"soup"}}]})");
    CHECK(many.wants_another());
    EventPattern big = pattern_of(with("soup", std::string(3000, 's')));
    CHECK(big.wants_another());
}

TEST_CASE("pattern: one odd event does not replace it, and what never fits is given up") {
    EventPattern pattern = pattern_of(k_chat);
    REQUIRE(pattern.matches(k_chat));
    CHECK_FALSE(pattern.matches("{}"));
    CHECK_FALSE(pattern.wants_another());
    CHECK_FALSE(pattern.matches("{}"));
    CHECK(pattern.wants_another());
    JsonSieve sieve(answer_schema());
    sieve.feed_borrowed(k_chat);
    for (int i = 0; i < 4; ++i) {
        pattern.learn(k_chat, sieve.loose());
        for (int miss = 0; miss < 3; ++miss)
            CHECK_FALSE(pattern.matches("{}"));
    }
    CHECK_FALSE(pattern.wants_another());
}

TEST_CASE("pattern: with it a stream is seen as without it, whatever follows") {
    // Byte by byte nothing is ever recognised.
    const std::vector<std::string> bases = {
        std::string(k_chat),
        R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"soup"}})",
        R"({"model":"m","created_at":"2026","message":{"role":"assistant","content":"soup"},"done":false})",
        R"({"text_output":"soup","model_name":"m","sequence_id":0})",
        R"({"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"{\"a\":"}}]}}]})",
        R"({"token":{"id":7,"text":"soup","logprob":-0.5},"generated_text":null,"details":null})",
        R"({"text":"soup","meta_info":{"completion_tokens":3,"finish_reason":null}})",
    };
    const std::vector<std::string> bits = {
        "\"", "\\",      "\n", "}",    ",",  ":", "0",  "1",   "e", ".",    "-",        "null",   "{}",  "[",
        "]",  "\\u0041", " ",  "\x01", "\t", "x", "\r", "\\n", "m", "\"\"", "\"stop\"", "[DONE]", "true"};
    std::mt19937 random(11);
    const auto any = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    for (int round = 0; round < 20'000; ++round) {
        const std::string& base = bases[any(bases.size())];
        const bool sse = any(4) != 0;
        std::vector<std::string> events(1 + any(3), base);
        for (auto more = 1 + any(4); more > 0; --more) {
            std::string changed = base;
            for (auto changes = any(3); changes > 0; --changes) {
                const std::size_t place = any(changed.size() + 1);
                changed.replace(place, any(3), bits[any(bits.size())]);
            }
            events.push_back(changed);
        }
        for (std::string& event : events) {
            if (sse) event.insert(0, any(8) == 0 ? "event: error\ndata: " : any(8) == 0 ? "data:" : "data: ");
            event += sse ? (any(10) == 0 ? "\ndata: more\n\n" : any(10) == 0 ? "\r\n\r\n" : "\n\n") : "\n";
        }
        const std::string_view type = sse ? "text/event-stream" : "application/x-ndjson";
        INFO("round " << round);
        REQUIRE(observed(events, 1 << 20, type) == observed(events, 1, type));
    }
}
