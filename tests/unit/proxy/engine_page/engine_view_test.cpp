// With time as an argument, and nobody who really fetches.

#include "proxy/engine_page/engine_view.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "metrics/telemetry.hpp"

namespace noren::proxy::engine_page {
namespace {

using namespace std::chrono_literals;
using metrics::engine::Figure;

Outcome page(const std::string& body, const std::string& fields = "Content-Type: text/plain\r\n",
             const std::string& status = "200 OK") {
    auto made = std::make_shared<Page>();
    made->text = "HTTP/1.1 " + status + "\r\n" + fields + "\r\n";
    made->head = std::get<http::ResponseHead>(http::parse_response_head(made->text));
    made->body = body;
    return {Ending::whole, {}, std::move(made)};
}

struct Rig {
    Rig() {
        board.set_fetcher([this](const std::shared_ptr<PageFetch>& fetch) { fetches.push_back(fetch); });
        wanted.figures = "on";
        wanted.window = 0ms;
        wanted.max_age = 10s;
    }
    /// A look that ends so; when it began.
    TimePoint look(const Outcome& outcome) {
        const auto is_over = view.look(wanted, nullptr, metrics::Clock::now());
        REQUIRE(is_over);
        CHECK_FALSE(is_over());
        fetches.back()->end(outcome);
        CHECK(is_over());
        view.update(fetches.back()->began);
        return fetches.back()->began;
    }
    std::optional<double> queued() const { return view.figures()[Figure::queued]; }

    PageBoard board;
    EngineView view{board, {"127.0.0.1", 8000, {}}};
    config::EngineMetrics wanted;
    std::vector<std::shared_ptr<PageFetch>> fetches;
};

const std::string k_tgi = "tgi_queue_size 5\n";

}  // namespace

TEST_CASE("while nothing is wanted the engine is not looked at") {
    Rig rig;
    rig.wanted.figures = "off";
    CHECK_FALSE(rig.view.look(rig.wanted, nullptr, metrics::Clock::now()));
    CHECK(rig.fetches.empty());
    CHECK_FALSE(rig.view.is_up());
    CHECK_FALSE(rig.view.age(metrics::Clock::now()));
}

TEST_CASE("figures stand until they are too old, and not a moment longer") {
    Rig rig;
    const TimePoint at = rig.look(page(k_tgi));
    CHECK(rig.fetches[0]->request.head.starts_with("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n"));
    CHECK(rig.queued() == 5);
    CHECK(rig.view.is_up() == true);
    CHECK(rig.view.age(at + 3s) == 3);
    rig.view.update(at + 10s);
    CHECK(rig.queued() == 5);
    rig.view.update(at + 10s + 1ns);
    CHECK_FALSE(rig.queued());
    CHECK(rig.view.is_up() == false);
    CHECK(rig.view.age(at + 60s) == 60);
    rig.look(page("tgi_queue_size 6\n"));
    CHECK(rig.queued() == 6);
}

TEST_CASE("a look that brings nothing to read leaves what is known") {
    Rig rig;
    const TimePoint at = rig.look(page(k_tgi));
    for (const Outcome& nothing :
         {Outcome{Ending::late, "d", nullptr}, Outcome{Ending::too_large, "d", nullptr},
          page("tgi_queue_size 9\n", "", "500 Oops"), page("{}", "Content-Type: application/json\r\n"),
          page("tgi_queue_size 9\n", "Content-Type: application/openmetrics-text; version=1.0.0\r\n"),
          page("tgi_queue_size 9\n", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n")}) {
        rig.look(nothing);
        CHECK(rig.queued() == 5);
        CHECK(rig.view.age(at + 1s) == 1);
    }
    for (const char* readable : {"", "Content-Type: TEXT/PLAIN ; version=0.0.4\r\n"}) {
        rig.look(page("tgi_queue_size 7\n", readable));
        CHECK(rig.queued() == 7);
    }
}

TEST_CASE("a look that ends just as another one takes its place is not lost") {
    Rig rig;
    rig.wanted.timeout = 10ms;
    const TimePoint at = metrics::Clock::now();
    REQUIRE(rig.view.look(rig.wanted, nullptr, at));
    rig.board.set_fetcher([&rig](const std::shared_ptr<PageFetch>&) { rig.fetches[0]->end(page(k_tgi)); });
    REQUIRE(rig.view.look(rig.wanted, nullptr, at + 5s));
    CHECK(rig.queued() == 5);
    CHECK(rig.view.age(at + 5s) == 5);
}

TEST_CASE("another engine takes the place of the first, an unknown one too") {
    Rig rig;
    rig.look(page(k_tgi));
    CHECK(rig.view.figures().engine == "tgi");
    rig.look(page("llamacpp:requests_deferred 2\n"));
    CHECK(rig.view.figures().engine == "llama.cpp");
    rig.look(page("who_is_this 2\n"));
    CHECK(rig.view.figures().engine.empty());
    CHECK(rig.view.is_up() == false);
}

TEST_CASE("the page stands behind noren's while it is wanted and young") {
    Rig rig;
    const auto merged = [&rig](std::optional<double> queue) {
        std::string own = "noren_up 1\n";
        rig.view.append_page(own, queue);
        return own.substr(11);
    };
    rig.wanted.merge = "on";
    rig.wanted.figures = "off";
    CHECK(merged(3).empty());
    const TimePoint at = rig.look(page(k_tgi));
    CHECK(merged(3) == k_tgi);
    CHECK_FALSE(rig.queued());
    rig.wanted.add_queue = "on";
    rig.look(page(k_tgi));
    CHECK(merged(3) == "tgi_queue_size 8\n");
    rig.view.update(at + 60s);
    CHECK(merged(3).empty());
    rig.look(page(k_tgi));
    rig.wanted.merge = "off";
    CHECK_FALSE(rig.view.look(rig.wanted, nullptr, metrics::Clock::now()));
    CHECK(merged(3).empty());
}

TEST_CASE("the figures as metrics, under the engine's name") {
    metrics::Telemetry telemetry({{}, 4, "v", "r", "c"});
    Rig rig;
    rig.view.sample_into(telemetry);
    CHECK(telemetry.exposition().find("noren_engine_queued") == std::string::npos);
    rig.look(
        page("trtllm_num_requests_waiting 6\ntrtllm_kv_cache_utilization 0.5\n"
             "trtllm_kv_cache_reused_blocks_total 30\ntrtllm_kv_cache_missed_blocks_total 70\n"));
    const std::string text = telemetry.exposition();
    for (const char* line :
         {"# TYPE noren_engine_queued_requests gauge", "# TYPE noren_engine_prefix_cache_hits_total counter",
          "noren_engine_queued_requests{engine=\"tensorrt-llm\"} 6",
          "noren_engine_kv_cache_usage_ratio{engine=\"tensorrt-llm\"} 0.5",
          "noren_engine_prefix_cache_queries_total{engine=\"tensorrt-llm\"} 100",
          "noren_engine_prefix_cache_hits_total{engine=\"tensorrt-llm\"} 30", "noren_engine_metrics_up 1",
          "# TYPE noren_engine_metrics_age_seconds gauge"}) {
        INFO(line);
        CHECK(text.find(std::string(line) + "\n") != std::string::npos);
    }
    CHECK(text.find("noren_engine_running_requests") == std::string::npos);
    CHECK(text.find("engine=\"vllm\"") == std::string::npos);
}

}  // namespace noren::proxy::engine_page
