// Where a request's time went.

#include <array>
#include <functional>
#include <random>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

double stage_sum(const Scrape& s, std::string_view stage) {
    return s("noren_request_stage_seconds_sum{stage=\"" + std::string(stage) + "\"}");
}

double duration_sum(const Scrape& s) {
    double sum = 0;
    for (const char* outcome : {"ok", "error", "cancelled"})
        sum += s("noren_request_duration_seconds_sum{model=\"m\",outcome=\"" + std::string(outcome) + "\"}");
    return sum;
}

TEST_CASE("each moment belongs to one stage") {
    Rig rig;
    Driven d(rig);
    d.until_sent();     // upload 0..10, queue 10..30, connect 30..35, upload 35..36
    d.stream_head(50);  // prefill 36..100
    d.read(100, tokens(1));
    d.read(150, tokens(1));  // decode 100..180
    d.whole(180);
    const Scrape s = rig.scrape();
    CHECK(stage_sum(s, "upload") == Approx(0.011));
    CHECK(stage_sum(s, "queue") == Approx(0.020));
    CHECK(stage_sum(s, "connect") == Approx(0.005));
    CHECK(stage_sum(s, "prefill") == Approx(0.064));
    CHECK(stage_sum(s, "decode") == Approx(0.080));
    CHECK(stage_sum(s, "stall") == 0);
    CHECK(s("noren_write_stall_seconds_count") == 1);
    CHECK(s("noren_write_stall_seconds_sum") == 0);
}

TEST_CASE("not streamed: the engine's time is prefill to its end") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.answer_head(200, "application/json", "", at(300));
    d.read(300, "{}");
    d.whole(301);
    const Scrape s = rig.scrape();
    CHECK(stage_sum(s, "prefill") == Approx(0.265));
    CHECK(stage_sum(s, "decode") == 0);
}

TEST_CASE("a tunnel's time is decode, not the wait for its beginning") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.switched("websocket", at(50));  // prefill 36..50
    d.end(450, Outcome::ok, 101);
    const Scrape s = rig.scrape();
    CHECK(stage_sum(s, "prefill") == Approx(0.014));
    CHECK(stage_sum(s, "decode") == Approx(0.400));
}

TEST_CASE("a slow client's time is carved out, and the stage before goes on") {
    Stream d(40);
    d.read(100, tokens(1));
    d.meter.stalled(at(110));
    d.meter.stalled(at(115));  // said again: no change
    d.meter.resumed(at(150));
    d.meter.resumed(at(155));
    d.read(160, tokens(1));
    d.meter.upstream_done(at(160));
    d.meter.stalled(at(160));  // the engine is done, the client still reads
    d.end(400);
    const Scrape s = d.scrape();
    CHECK(stage_sum(s, "stall") == Approx(0.280));
    CHECK(stage_sum(s, "decode") == Approx(0.020));
    CHECK(s("noren_write_stall_seconds_sum") == Approx(0.280));
}

TEST_CASE("an answer that was broken off is over for the engine, and its rest is the client's time") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.answer_head(200, "application/json", "", at(40));
    d.read(100, "{");
    d.meter.stalled(at(110));
    CHECK(rig.scrape()("noren_awaiting_first_token_requests") == 1);
    CHECK(rig.scrape()("noren_stalled_requests") == 1);
    d.meter.upstream_broken();
    d.meter.stalled(at(150));  // the rest waits for the client
    CHECK(rig.scrape()("noren_awaiting_first_token_requests") == 0);
    CHECK(rig.scrape()("noren_stalled_requests") == 0);
    d.end(400, Outcome::upstream_error, 200, "upstream_reset");
    const Scrape s = rig.scrape();
    CHECK(stage_sum(s, "prefill") == Approx(0.074));
    CHECK(stage_sum(s, "stall") == Approx(0.290));
}

TEST_CASE("a first token that comes while the client stalls begins decode behind the stall") {
    Stream d(40);
    d.meter.stalled(at(50));
    d.read(60, tokens(1));
    d.meter.resumed(at(80));
    d.whole(100);
    const Scrape s = d.scrape();
    CHECK(stage_sum(s, "prefill") == Approx(0.014));
    CHECK(stage_sum(s, "stall") == Approx(0.030));
    CHECK(stage_sum(s, "decode") == Approx(0.020));
}

TEST_CASE("an answer to half a request ends the upload stage") {
    Rig rig;
    Driven d(rig);
    d.meter.queued(at(10), false);
    d.meter.admitted(at(10));
    d.meter.connected(at(20), true);
    d.meter.answer_head(413, "application/json", "", at(50));
    d.whole(60);
    const Scrape s = rig.scrape();
    CHECK(stage_sum(s, "upload") == Approx(0.040));
    CHECK(stage_sum(s, "prefill") == Approx(0.010));
}

TEST_CASE("stages are observed for exactly the requests whose duration is") {
    Rig rig;
    {
        Driven rejected(rig);
        rejected.meter.queued(at(1), true);
        rejected.end(2, Outcome::rejected, 429, "queue_full");
    }
    {
        Driven passed(rig, ApiEndpoint::passthrough, false);
        passed.until_sent();
        passed.meter.answer_head(200, "text/plain", "", at(50));
        passed.whole(50);
    }
    Scrape s = rig.scrape();
    CHECK(s(R"(noren_request_stage_seconds_count{stage="queue"})") == 0);
    CHECK(s("noren_queue_wait_seconds_count") == 0);
    CHECK(duration_sum(s) == 0);
    {
        Driven left(rig);
        left.meter.asked("m", 1, true);
        left.meter.queued(at(1), true);
        left.end(9, Outcome::client_closed, 0, "client_closed");
    }
    s = rig.scrape();
    CHECK(s(R"(noren_request_stage_seconds_count{stage="queue"})") == 1);
    CHECK(s(R"(noren_request_stage_seconds_sum{stage="queue"})") == Approx(0.008));
    CHECK(duration_sum(s) == Approx(0.009));
}

/// Random exchanges whose truth is known: every step is given the stage that the time after it belongs to.
TEST_CASE("random exchanges: each stage has its time, and all add up to the durations") {
    constexpr int k_exchanges = 3000;
    Rig rig;
    std::mt19937 random(20);
    std::array<double, k_stage_count> truth{};
    double durations = 0;
    for (int i = 0; i < k_exchanges; ++i) {
        Driven d(rig);
        d.meter.asked("m", 1, true);
        double now = 0;
        const auto spend = [&](Stage stage) {
            // Up to 2 s, and now and then no time at all.
            const double ms = random() % 8 == 0 ? 0 : static_cast<double>(random() % 2'000'000) / 1000;
            now += ms;
            truth[static_cast<std::size_t>(stage)] += ms / 1e3;
        };
        const auto maybe_stall = [&](Stage before) {
            if (random() % 3 != 0) return;
            d.meter.stalled(at(now));
            spend(Stage::stall);
            d.meter.resumed(at(now));
            spend(before);
        };
        const std::vector<std::function<void()>> steps = {
            [&] { spend(Stage::upload); },
            [&] { d.meter.queued(at(now), true), spend(Stage::queue); },
            [&] { d.meter.admitted(at(now)), spend(Stage::connect); },
            [&] { d.meter.connected(at(now), random() % 2 == 0), spend(Stage::upload); },
            [&] { d.meter.sent(at(now)), spend(Stage::prefill); },
            [&] { d.stream_head(now), spend(Stage::prefill), maybe_stall(Stage::prefill); },
            [&] { d.read(now, tokens(1)), spend(Stage::decode), maybe_stall(Stage::decode); },
            [&] { d.read(now, tokens(3)), spend(Stage::decode), maybe_stall(Stage::decode); },
            [&] { d.meter.upstream_done(at(now)), spend(Stage::decode); },
        };
        const std::size_t reached = random() % steps.size() + 1;
        for (std::size_t step = 0; step < reached; ++step)
            steps[step]();
        const bool whole = reached == steps.size();
        d.end(now, whole ? Outcome::ok : Outcome::client_closed, 200, whole ? "" : "client_closed");
        durations += now / 1e3;
    }
    const Scrape s = rig.scrape();
    double sum = 0;
    for (std::size_t i = 0; i < k_stage_count; ++i) {
        INFO(k_stage_names[i]);
        CHECK(stage_sum(s, k_stage_names[i]) == Approx(truth[i]).margin(1e-6));
        sum += stage_sum(s, k_stage_names[i]);
    }
    CHECK(duration_sum(s) == Approx(durations).margin(1e-6));
    CHECK(sum == Approx(duration_sum(s)).epsilon(1e-12));
    CHECK(s(R"(noren_request_stage_seconds_count{stage="decode"})") == k_exchanges);
}

}  // namespace
}  // namespace noren::metrics
