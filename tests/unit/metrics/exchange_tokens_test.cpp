// Token counts, finish reasons and what could not be seen.

#include <catch2/catch.hpp>

#include "metrics/finish_reason.hpp"
#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

constexpr const char* k_events = R"(noren_output_tokens_total{model="m",source="events"})";
constexpr const char* k_usage = R"(noren_output_tokens_total{model="m",source="usage"})";

TEST_CASE("output tokens are counted as they come; usage adds what the events did not show") {
    Stream d(40);
    d.read(50, tokens(2));
    CHECK(d.scrape()(k_events) == 2);
    d.read(60, tokens(3));
    CHECK(d.scrape()(k_events) == 5);
    d.read(70, usage_event(100, 12, 64, 4) + std::string(k_done));
    CHECK(d.scrape()(k_usage) == 0);
    d.whole(70);
    const Scrape s = d.scrape();
    CHECK(s(k_events) == 5);
    CHECK(s(k_usage) == 7);
    CHECK(s(R"(noren_prompt_tokens_total{model="m"})") == 100);
    CHECK(s(R"(noren_prompt_cached_tokens_total{model="m"})") == 64);
    CHECK(s(R"(noren_reasoning_tokens_total{model="m"})") == 4);
    CHECK(s(R"(noren_request_prompt_tokens_sum{model="m"})") == 100);
    CHECK(s(R"(noren_request_output_tokens_sum{model="m"})") == 12);
    CHECK(s(R"(noren_request_output_tokens_bucket{model="m",le="4"})") == 0);
    CHECK(s(R"(noren_request_output_tokens_bucket{model="m",le="16"})") == 1);
}

TEST_CASE("usage below the events takes nothing back") {
    Stream d(40);
    d.read(50, tokens(9));
    d.read(60, usage_event(1, 6) + std::string(k_done));
    d.whole(60);
    const Scrape s = d.scrape();
    CHECK(s(k_events) == 9);
    CHECK(s(k_usage) == 0);
    CHECK(s(R"(noren_request_output_tokens_sum{model="m"})") == 6);
}

TEST_CASE("without usage the events are the count") {
    Stream d(40);
    d.read(50, tokens(3) + std::string(k_done));
    d.whole(60);
    const Scrape s = d.scrape();
    CHECK(s(k_events) == 3);
    CHECK(s(k_usage) == 0);
    CHECK(s(R"(noren_request_output_tokens_sum{model="m"})") == 3);
    CHECK(s(R"(noren_request_prompt_tokens_count{model="m"})") == 0);
}

TEST_CASE("a cut stream keeps the tokens it showed, also one whose end mark is missing") {
    Stream d(40);
    std::string cut = tokens(3);
    cut.resize(cut.size() - 2);
    d.read(50, cut);
    CHECK(d.scrape()(k_events) == 2);
    d.end(60, Outcome::upstream_error, 200, "upstream_reset");
    const Scrape s = d.scrape();
    CHECK(s(k_events) == 3);
    CHECK(s(R"(noren_finish_reasons_total{model="m",finish_reason="none"})") == 1);
}

TEST_CASE("finish reasons of every dialect fold into few") {
    struct Case {
        const char *word, *folded;
    };
    const auto c = GENERATE(
        Case{"stop", "stop"}, Case{"end_turn", "stop"}, Case{"stop_sequence", "stop"},
        Case{"eos_token", "stop"}, Case{"eos", "stop"}, Case{"completed", "stop"}, Case{"COMPLETE", "stop"},
        Case{"length", "length"}, Case{"max_tokens", "length"}, Case{"limit", "length"},
        Case{"max_output_tokens", "length"}, Case{"MAX_TOKENS", "length"}, Case{"tool_calls", "tool_calls"},
        Case{"tool_use", "tool_calls"}, Case{"function_call", "tool_calls"},
        Case{"content_filter", "content_filter"}, Case{"refusal", "content_filter"}, Case{"abort", "other"},
        Case{"load", "other"}, Case{"", "other"}, Case{"none", "other"}, Case{"other", "other"});
    INFO(c.word);
    CHECK(k_finish_reasons.at(finish_reason_index(c.word)) == c.folded);
}

TEST_CASE("no finish reason at all is none") {
    CHECK(k_finish_reasons.at(finish_reason_index(std::nullopt)) == "none");
}

TEST_CASE("the finish reason of an answer is counted once") {
    Stream d(40);
    d.read(50, tokens(1) + finish_event("length") + std::string(k_done));
    d.whole(60);
    const Scrape s = d.scrape();
    CHECK(s(R"(noren_finish_reasons_total{model="m",finish_reason="length"})") == 1);
    CHECK(s(R"(noren_finish_reasons_total{model="m",finish_reason="none"})") == 0);
}

TEST_CASE("what generates nothing, or failed, has no finish reason") {
    Rig rig;
    const auto answer = [&](ApiEndpoint endpoint, int status, const char* encoding) {
        Driven d(rig, endpoint);
        d.until_sent();
        d.meter.answer_head(status, "application/json", encoding, at(40));
        d.meter.upstream_done(at(40));
        d.end(40, Outcome::ok, status);
    };
    answer(ApiEndpoint::embeddings, 200, "");
    answer(ApiEndpoint::rerank, 200, "");
    answer(ApiEndpoint::chat_completions, 400, "");
    answer(ApiEndpoint::chat_completions, 200, "gzip");
    CHECK(rig.scrape()(R"(noren_finish_reasons_total{model="m",finish_reason="none"})") == 0);
    answer(ApiEndpoint::completions, 200, "");
    CHECK(rig.scrape()(R"(noren_finish_reasons_total{model="m",finish_reason="none"})") == 1);
}

TEST_CASE("a compressed answer is told to be unobserved") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.answer_head(200, "text/event-stream", "gzip", at(40));
    d.read(50, tokens(2));
    d.whole(60);
    const Scrape s = rig.scrape();
    CHECK(s(R"(noren_unobserved_responses_total{reason="encoding"})") == 1);
    CHECK(s(k_events) == 0);
    CHECK(s(R"(noren_time_to_first_token_seconds_count{model="m"})") == 0);
    CHECK(s(R"(noren_request_duration_seconds_count{model="m",outcome="ok"})") == 1);
}

TEST_CASE("events that are not understood are counted") {
    Stream d(40);
    d.read(50, "data: ramen\n\n" + tokens(1) + "data: {broken\n\n");
    d.whole(60);
    const Scrape s = d.scrape();
    CHECK(s("noren_stream_parse_errors_total") == 2);
    CHECK(s(k_events) == 1);
}

}  // namespace
}  // namespace noren::metrics
