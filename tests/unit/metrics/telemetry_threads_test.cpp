// Many workers and a scraper at once: exact totals (run under ThreadSanitizer as well).

#include <atomic>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

TEST_CASE("exchanges on four threads under a storm of scrapes") {
    constexpr int k_threads = 4, k_exchanges = 200, k_reads = 70;
    Telemetry telemetry({{"m"}, 8, "", "", ""});
    std::atomic<int> lines{0};
    telemetry.set_access_log([&lines](std::string_view) { ++lines; });

    std::atomic<bool> done{false};
    std::atomic<int> running{k_threads};
    std::thread scraper([&] {
        double last = 0;
        do {
            const Scrape s(telemetry);
            const double now = s(R"(noren_output_tokens_total{model="m",source="events"})");
            if (now < last) done = true;  // a counter that went back
            last = now;
        } while (running > 0 && !done);
    });
    std::thread reloader([&] {
        for (std::size_t i = 0; running > 0 && i < 2000; ++i)
            telemetry.set_models({"m", "named-" + std::to_string(i % 3)}, 4 + i % 8);
    });
    std::vector<std::thread> workers;
    for (int t = 0; t < k_threads; ++t) {
        workers.emplace_back([&telemetry, &running, t] {
            for (int i = 0; i < k_exchanges; ++i) {
                ExchangeMeter meter(telemetry, ApiEndpoint::completions, true, "id", "POST",
                                    "/v1/completions", at(0));
                meter.queued(at(1), true);
                meter.admitted(at(2));
                meter.connected(at(3), true);
                // Every other one brings a name that is new, or has been for another thread.
                meter.asked(i % 2 == 0 ? "m" : "new-" + std::to_string((i + t) % 20), 1, true);
                meter.sent(at(4));
                meter.answer_head(200, "text/event-stream", "", at(5));
                for (int r = 0; r < k_reads; ++r) {
                    meter.body(tokens(1));
                    meter.mark(at(10 + r));
                }
                meter.upstream_done(at(100));
                meter.finish({Outcome::ok, 200, {}}, {1, 2, 3, 4}, at(100));
            }
            --running;
        });
    }
    for (std::thread& worker : workers)
        worker.join();
    scraper.join();
    reloader.join();

    CHECK_FALSE(done);
    constexpr double k_all = k_threads * k_exchanges;
    const Scrape s(telemetry);
    double requests = 0, events = 0, gaps = 0, gap_time = 0, first = 0;
    for (const auto& [series, value] : s.all()) {
        if (series.rfind("noren_requests_total{", 0) == 0) requests += value;
        if (series.rfind("noren_output_tokens_total{", 0) == 0) events += value;
        if (series.rfind("noren_inter_token_latency_seconds_count{", 0) == 0) gaps += value;
        if (series.rfind("noren_inter_token_latency_seconds_sum{", 0) == 0) gap_time += value;
        if (series.rfind("noren_time_to_first_token_seconds_count{", 0) == 0) first += value;
    }
    CHECK(requests == k_all);
    CHECK(first == k_all);
    CHECK(events == k_all * k_reads);
    CHECK(gaps == k_all * (k_reads - 1));
    CHECK(gap_time == Approx(k_all * (k_reads - 1) * 0.001));
    CHECK(s(R"(noren_output_tokens_total{model="m",source="events"})") == k_all * k_reads / 2);
    CHECK(s(R"(noren_sent_bytes_total{side="upstream"})") == k_all * 4);
    CHECK(s("noren_inflight_requests") == 0);
    CHECK(s("noren_awaiting_first_token_requests") == 0);
    CHECK(lines == k_threads * k_exchanges);
}

}  // namespace
}  // namespace noren::metrics
