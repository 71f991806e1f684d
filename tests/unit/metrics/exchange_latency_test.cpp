// TTFT, TPOT, TPS and gaps of one exchange, against values worked out by hand.

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

constexpr const char* k_ttft_count = R"(noren_time_to_first_token_seconds_count{model="m"})";
constexpr const char* k_ttft_sum = R"(noren_time_to_first_token_seconds_sum{model="m"})";
constexpr const char* k_tpot_count = R"(noren_time_per_output_token_seconds_count{model="m"})";
constexpr const char* k_tpot_sum = R"(noren_time_per_output_token_seconds_sum{model="m"})";
constexpr const char* k_tps_count = R"(noren_request_output_tokens_per_second_count{model="m"})";
constexpr const char* k_tps_sum = R"(noren_request_output_tokens_per_second_sum{model="m"})";
constexpr const char* k_itl_count = R"(noren_inter_token_latency_seconds_count{model="m"})";
constexpr const char* k_itl_sum = R"(noren_inter_token_latency_seconds_sum{model="m"})";

TEST_CASE("a stream of five tokens, 20 ms apart") {
    Stream d(50);
    d.read(60, role_event());  // no token
    CHECK(d.scrape()(k_ttft_count) == 0);
    d.read(136, tokens(1));
    CHECK(d.scrape()(k_ttft_count) == 1);  // at once, not at the end
    for (int i = 1; i < 5; ++i)
        d.read(136 + 20 * i, tokens(1));
    d.read(220, finish_event("stop") + std::string(k_done));
    d.whole(221);

    const Scrape s = d.scrape();
    CHECK(s(k_ttft_sum) == Approx(0.136));
    CHECK(s(R"(noren_upstream_time_to_first_token_seconds_sum{model="m"})") == Approx(0.100));
    CHECK(s(R"(noren_upstream_time_to_first_token_seconds_count{model="m"})") == 1);
    CHECK(s(k_itl_count) == 4);
    CHECK(s(k_itl_sum) == Approx(0.080));
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.0175"})") == 0);
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.02"})") == 4);
    CHECK(s(k_tpot_sum) == Approx(0.020));  // 80 ms / (5-1), not / 5
    CHECK(s(k_tps_sum) == Approx(50.0));    // 4 / 80 ms, not 5 / 80 ms = 62.5
    CHECK(s(R"(noren_request_output_tokens_per_second_bucket{model="m",le="50"})") == 1);
    CHECK(s(R"(noren_request_output_tokens_per_second_bucket{model="m",le="40"})") == 0);
    CHECK(s(R"(noren_request_duration_seconds_sum{model="m",outcome="ok"})") == Approx(0.221));
    CHECK(s("noren_queue_wait_seconds_sum") == Approx(0.020));
    CHECK(s("noren_queue_wait_seconds_count") == 1);
    CHECK(s("noren_proxy_overhead_seconds_sum") == Approx(0.001));  // sent - connected
}

TEST_CASE("one token: TTFT, but no speed") {
    Stream d(50);
    d.read(100, tokens(1) + usage_event(5, 1) + std::string(k_done));
    d.whole(100);
    const Scrape s = d.scrape();
    CHECK(s(k_ttft_count) == 1);
    CHECK(s(k_tpot_count) == 0);
    CHECK(s(k_tps_count) == 0);
    CHECK(s(k_itl_count) == 0);
}

TEST_CASE("two tokens span one interval") {
    Stream d(50);
    d.read(100, tokens(1));
    d.read(110, tokens(1));
    d.whole(500);
    const Scrape s = d.scrape();
    CHECK(s(k_tpot_sum) == Approx(0.010));
    CHECK(s(k_tps_sum) == Approx(100.0));
}

TEST_CASE("three tokens per read") {
    Stream d(50);
    d.read(100, tokens(3));
    d.read(130, tokens(3));
    d.read(160, tokens(3));
    d.whole(160);
    const Scrape s = d.scrape();
    CHECK(s(k_itl_count) == 6);
    CHECK(s(k_itl_sum) == Approx(0.060));
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.01"})") == 6);
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.008"})") == 0);
    CHECK(s(k_tpot_sum) == Approx(0.060 / 8));
}

TEST_CASE("an event cut between two reads is stamped by the read that completes it") {
    Stream d(50);
    const std::string event = tokens(1);
    d.read(100, event.substr(0, 20));
    d.read(130, event.substr(20));
    d.whole(131);
    CHECK(d.scrape()(k_ttft_sum) == Approx(0.130));
}

TEST_CASE("pieces of one read are one arrival") {
    Stream d(50);
    d.read(100, tokens(1));
    d.meter.body(tokens(1));
    d.meter.body(tokens(1));
    d.meter.mark(at(120));
    d.whole(120);
    const Scrape s = d.scrape();
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.008"})") == 0);
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.01"})") == 2);
}

TEST_CASE("an event that only the end completes belongs to the last read") {
    Stream d(50);
    d.read(100, tokens(1));
    std::string last = tokens(2);
    last.resize(last.size() - 2);  // no blank line
    d.read(120, last);
    d.meter.upstream_done(at(120));
    d.end(121);
    const Scrape s = d.scrape();
    CHECK(s(k_itl_count) == 2);
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.008"})") == 0);  // no zero gap
    CHECK(s(R"(noren_inter_token_latency_seconds_bucket{model="m",le="0.01"})") == 2);
    CHECK(s(R"(noren_output_tokens_total{model="m",source="events"})") == 3);
}

TEST_CASE("first and last token in one read: TTFT, no gaps, no speed") {
    Stream d(50);
    d.read(90, tokens(7) + usage_event(3, 7) + std::string(k_done));
    d.whole(90);
    const Scrape s = d.scrape();
    CHECK(s(k_ttft_sum) == Approx(0.090));
    CHECK(s(k_itl_count) == 0);
    CHECK(s(k_tpot_count) == 0);
}

TEST_CASE("usage says more than the events: it is N") {
    Stream d(50);
    d.read(100, tokens(1));
    d.read(200, tokens(1) + usage_event(3, 11) + std::string(k_done));
    d.whole(200);
    const Scrape s = d.scrape();
    CHECK(s(k_tpot_sum) == Approx(0.010));  // 100 ms / 10
    CHECK(s(k_tps_sum) == Approx(100.0));
    CHECK(s(k_itl_count) == 1);  // gaps are of events
}

TEST_CASE("usage says less than the events of a whole stream: it is N all the same") {
    Stream d(50);
    for (int i = 0; i < 5; ++i)
        d.read(100 + 10 * i, tokens(1));
    d.read(141, usage_event(3, 3) + std::string(k_done));
    d.whole(141);
    CHECK(d.scrape()(k_tpot_sum) == Approx(0.020));  // 40 ms / 2
}

TEST_CASE("several choices: first token yes, gaps and speed of interleaved tokens no") {
    Rig rig;
    Driven d(rig);
    d.until_sent("m", 2);
    d.stream_head(50);
    for (int i = 0; i < 200; ++i)
        d.read(100 + i, tokens(1));
    d.whole(300);
    const Scrape s = rig.scrape();
    CHECK(s(k_ttft_count) == 1);
    CHECK(s(k_itl_count) == 0);
    CHECK(s(k_tpot_count) == 0);
    CHECK(s(k_tps_count) == 0);
    CHECK(s(R"(noren_output_tokens_total{model="m",source="events"})") == 200);
}

TEST_CASE("an answer that is no stream has no first token time and no speed, but its usage counts") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.answer_head(200, "application/json", "", at(500));
    d.read(500, R"({"model":"m","choices":[{"message":{"content":"ramen"},"finish_reason":"stop"}],)"
                R"("usage":{"prompt_tokens":9,"completion_tokens":40}})");
    d.whole(500);
    const Scrape s = rig.scrape();
    CHECK(s(k_ttft_count) == 0);
    CHECK(s(R"(noren_upstream_time_to_first_token_seconds_count{model="m"})") == 0);
    CHECK(s(k_tpot_count) == 0);
    CHECK(s(R"(noren_output_tokens_total{model="m",source="usage"})") == 40);
    CHECK(s(R"(noren_output_tokens_total{model="m",source="events"})") == 0);
    CHECK(s(R"(noren_prompt_tokens_total{model="m"})") == 9);
    CHECK(s(R"(noren_request_duration_seconds_count{model="m",outcome="ok"})") == 1);
}

TEST_CASE("a client that leaves before the first token leaves no sample of it") {
    Stream d(50);
    d.read(60, role_event());
    d.end(5000, Outcome::client_closed, 200, "client_closed");
    const Scrape s = d.scrape();
    CHECK(s(k_ttft_count) == 0);
    CHECK(s(R"(noren_request_duration_seconds_sum{model="m",outcome="cancelled"})") == Approx(5.0));
}

TEST_CASE("a client that leaves after it: TTFT and gaps stay, no speed of a cut stream") {
    Stream d(50);
    d.read(100, tokens(1));
    d.read(120, tokens(1));
    d.end(130, Outcome::client_closed, 200, "client_closed");
    const Scrape s = d.scrape();
    CHECK(s(k_ttft_count) == 1);
    CHECK(s(k_itl_count) == 1);
    CHECK(s(k_tpot_count) == 0);
    CHECK(s(k_tps_count) == 0);
}

TEST_CASE("gaps of a long stream show while it runs") {
    Stream d(50);
    for (int i = 0; i < 66; ++i)
        d.read(100 + i, tokens(1));
    CHECK(d.scrape()(k_itl_count) == 64);
    d.whole(200);
    CHECK(d.scrape()(k_itl_count) == 65);
}

TEST_CASE(
    "sent twice after a dead reused connection: one overhead, the second sending starts the engine's time") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.connected(at(41), false);
    d.meter.sent(at(42));
    d.stream_head(50);
    d.read(142, tokens(1));
    d.whole(142);
    const Scrape s = rig.scrape();
    CHECK(s("noren_proxy_overhead_seconds_count") == 1);
    CHECK(s(R"(noren_upstream_time_to_first_token_seconds_sum{model="m"})") == Approx(0.100));
}

TEST_CASE("no overhead figure where the client's upload is in it") {
    Rig rig;
    Driven d(rig);
    d.meter.queued(at(1), false);
    d.meter.admitted(at(1));
    d.meter.connected(at(2), true);
    d.meter.sent(at(900));
    d.whole(1000);
    CHECK(rig.scrape()("noren_proxy_overhead_seconds_count") == 0);
}

}  // namespace
}  // namespace noren::metrics
