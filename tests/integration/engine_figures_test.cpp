// What noren makes of the engine's metrics page on its own page, and how it tells its load in answers.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

Peer sends(const NorenUnderTest& noren, const std::string& request) {
    Peer client = Peer::connect(noren.port());
    client.send(request);
    return client;
}

std::string answer(const std::string& body, const std::string& type = "text/plain; version=0.0.4") {
    return "HTTP/1.1 200 OK\r\nContent-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

/// Asks noren for its own page while the test plays the engine.
std::string page_with(const NorenUnderTest& noren, Listener& engine, const std::string& bytes) {
    Peer client = Peer::connect(noren.ops_port());
    client.send("GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    Peer asked = engine.accept();
    CHECK(asked.receive_until("\r\n\r\n").starts_with("GET /metrics "));
    asked.send(bytes);
    asked.close();
    return client.receive_all();
}

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

const auto k_figures_on = [](auto& config) {
    config.engine_metrics.figures = "on";
    config.engine_metrics.window = 0s;
};

const std::string k_queued = "noren_engine_queued_requests";
const std::string k_up = "noren_engine_metrics_up";

}  // namespace

TEST_CASE("engine figures: they are what the engine knows of itself") {
    sim::Options options;
    options.gpu.max_batch = 2;
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren(engine.url(), k_figures_on);
    CHECK(noren.metric(k_queued + "{engine=\"vllm\"}") == 0);
    CHECK(noren.reaches(k_up, 1));
    std::vector<Peer> clients;
    for (int i = 0; i < 5; ++i)
        clients.push_back(sends(noren, test::chat(4'000)));
    CHECK(noren.reaches(k_queued + "{engine=\"vllm\"}", 3));
    CHECK(noren.reaches("noren_engine_running_requests{engine=\"vllm\"}", 2));
    const double usage = noren.metric("noren_engine_kv_cache_usage_ratio{engine=\"vllm\"}");
    CHECK(usage > 0);
    CHECK(usage < 1);
    CHECK(noren.metric("noren_engine_metrics_age_seconds") >= 0);
    CHECK(noren.metric("noren_engine_metrics_age_seconds") < 10);
    clients.clear();
    CHECK(noren.reaches("noren_engine_running_requests{engine=\"vllm\"}", 0));
    // Of the two that had their prompt in the batch, and of those that came after them; the simulated engine
    // has no prefix cache, so it looks up all and finds nothing.
    CHECK(noren.metric("noren_engine_prefix_cache_queries_total{engine=\"vllm\"}") > 0);
    CHECK(noren.metric("noren_engine_prefix_cache_hits_total{engine=\"vllm\"}") == 0);
}

TEST_CASE("engine figures: off as long as nobody wants them; then the engine is not asked either") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    const std::string page = test::get(noren.ops_port(), "/metrics");
    CHECK_FALSE(holds(page, k_queued));
    CHECK_FALSE(holds(page, k_up));
    CHECK(holds(page, "noren_engine_page_shares_total 0\n"));
    CHECK_FALSE(engine.is_called(0));
    noren.reload(k_figures_on);
    CHECK(holds(page_with(noren, engine, answer("tgi_queue_size 5\n")), k_queued + "{engine=\"tgi\"} 5\n"));
    noren.reload([](auto& config) { config.engine_metrics.figures = "off"; });
    CHECK_FALSE(holds(test::get(noren.ops_port(), "/metrics"), k_queued));
}

TEST_CASE("engine figures: of an engine that nobody knows nothing is claimed") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_figures_on);
    for (const std::string& bytes :
         {answer("some_queue 5\n"), answer("{\"tgi_queue_size\": 5}", "application/json"),
          answer("tgi_queue_size 5\n# EOF\n", "application/openmetrics-text; version=1.0.0"),
          std::string("HTTP/1.1 404 Not Found\r\nContent-Length: 17\r\n\r\ntgi_queue_size 5\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 17\r\n\r\ntgi_queue_size "
                      "5\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ntgi_queue_size 5\n"), std::string()}) {
        INFO(bytes);
        const std::string page = page_with(noren, engine, bytes);
        CHECK(holds(page, "noren_build_info{"));
        CHECK_FALSE(holds(page, k_queued));
        CHECK(holds(page, k_up + " 0\n"));
    }
    CHECK(holds(page_with(noren, engine, "HTTP/1.0 200 OK\r\n\r\ntgi_queue_size 5\n"), k_up + " 1\n"));
}

TEST_CASE("engine figures: what is too old is left out, and until then what is known stands") {
    auto engine = std::make_unique<Listener>();
    NorenUnderTest noren(engine->url(), [](auto& config) {
        k_figures_on(config);
        config.engine_metrics.max_age = 3s;
    });
    const auto before = std::chrono::steady_clock::now();
    CHECK(holds(page_with(noren, *engine, answer("tgi_queue_size 5\n")), k_queued + "{engine=\"tgi\"} 5\n"));
    engine.reset();
    const std::string next = test::get(noren.ops_port(), "/metrics");
    if (std::chrono::steady_clock::now() < before + 3s) CHECK(holds(next, k_queued + "{engine=\"tgi\"} 5\n"));
    REQUIRE(noren.reaches(k_queued + "{engine=\"tgi\"}", -1));
    CHECK(std::chrono::steady_clock::now() >= before + 3s);
    CHECK(noren.metric(k_up) == 0);
    CHECK(noren.metric("noren_engine_metrics_age_seconds") >= 3);
    CHECK(noren.metric("noren_engine_page_fetches_total{result=\"unreachable\"}") >= 1);
}

TEST_CASE("engine figures: an engine that does not answer holds up no scrape of noren") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_figures_on);
    const std::string page = test::get(noren.ops_port(), "/metrics");
    CHECK(holds(page, "noren_build_info{"));
    CHECK(holds(page, k_up + " 0\n"));
    Peer asked = engine.accept();
    asked.receive_until("\r\n\r\n");
    asked.send(answer("tgi_queue_size 7\n"));  // late for that scrape, and in time for the next one
    CHECK(test::eventually(
        [&] { return noren.metric("noren_engine_page_fetches_total{result=\"ok\"}") == 1; }));
}

TEST_CASE("merged page: noren's families and then the engine's, none twice") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.engine_metrics.merge = "on"; });
    const std::string page = page_with(noren, engine,
                                       answer("# HELP process_open_fds f\n# TYPE process_open_fds gauge\n"
                                              "process_open_fds 99\n# TYPE vllm:num_requests_waiting gauge\n"
                                              "vllm:num_requests_waiting{engine=\"0\"} 3.0\nnonsense\n"));
    CHECK(holds(page, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    CHECK(page.ends_with(
        "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"0\"} 3.0\n"));
    CHECK(count(page, "# TYPE process_open_fds ") == 1);
    CHECK_FALSE(holds(page, "process_open_fds 99"));
    CHECK_FALSE(holds(page, k_queued));  // figures are another key
}

TEST_CASE("merged page: the engine's waiting requests include noren's queue, if that is wanted") {
    sim::Engine engine(sim::Options{});
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.engine_metrics.merge = "on";
        config.engine_metrics.add_queue = "on";
        config.engine_metrics.window = 0s;
    });
    std::vector<Peer> clients;
    for (int i = 0; i < 4; ++i)
        clients.push_back(sends(noren, test::chat(4'000)));
    REQUIRE(noren.reaches("noren_queued_requests", 3));
    const std::string waiting = "vllm:num_requests_waiting{engine=\"0\",model_name=\"sim-7b\"}";
    CHECK(noren.reaches(waiting, 3));
    CHECK(holds(test::get(noren.port(), "/metrics"), waiting + " 0\n"));
    noren.reload([](auto& config) { config.engine_metrics.add_queue = "off"; });
    CHECK(noren.reaches("noren_queued_requests", 3));
    CHECK(noren.metric(waiting) == 0);
}

TEST_CASE("load report: in an answer that is asked for one, and in no other") {
    sim::Options options;
    options.lone = sim::Pace{0ms, 0ms, false};
    options.created = 1'700'000'000;
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 4;
        config.engine_metrics.orca = "asked";
    });
    const auto answer_to = [&](const std::string& fields) {
        return sends(noren, test::chat(5, "x-request-id: same\r\nConnection: close\r\n" + fields))
            .receive_all();
    };
    const auto body = [](const std::string& all) { return all.substr(all.find("\r\n\r\n")); };
    const std::string plain = answer_to("");
    const std::string text = answer_to("endpoint-load-metrics-format: text\r\n");
    const std::string json = answer_to("Endpoint-Load-Metrics-Format: JSON\r\n");
    CHECK_FALSE(holds(plain, "endpoint-load-metrics"));
    CHECK(holds(text,
                "\r\nendpoint-load-metrics: TEXT application_utilization=0.25, named_metrics.queued=0, "
                "named_metrics.running=1\r\n"));
    CHECK(holds(json,
                "\r\nendpoint-load-metrics: JSON {\"application_utilization\": 0.25, \"named_metrics\": "
                "{\"queued\": 0, \"running\": 1}}\r\n"));
    REQUIRE(holds(body(plain), "data: [DONE]"));
    CHECK(body(text) == body(plain));
    CHECK(body(json) == body(plain));
    CHECK_FALSE(holds(answer_to("endpoint-load-metrics-format: BIN\r\n"), "endpoint-load-metrics:"));
    // A request that comes together with the news of a reload may still be served by the old settings.
    const auto reload_to = [&](const char* orca) {
        noren.reload([orca](auto& config) { config.engine_metrics.orca = orca; });
        answer_to("");
    };
    reload_to("always");
    CHECK(holds(answer_to(""), "\r\nendpoint-load-metrics: TEXT application_utilization=0.25"));
    reload_to("off");
    CHECK_FALSE(holds(answer_to("endpoint-load-metrics-format: text\r\n"), "endpoint-load-metrics:"));
}

TEST_CASE("load report: the engine's own stays alone") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.engine_metrics.orca = "always"; });
    Peer client = sends(noren, test::chat(5, "endpoint-load-metrics-format: TEXT\r\n"));
    Peer asked = engine.accept();
    CHECK(holds(asked.receive_until("\r\n\r\n"), "endpoint-load-metrics-format: TEXT\r\n"));
    asked.send(
        "HTTP/1.1 200 OK\r\nEndpoint-Load-Metrics: TEXT named_metrics.kv_cache_usage_perc=0.5\r\n"
        "Content-Length: 2\r\n\r\nok");
    const std::string got = client.receive_until("ok");
    CHECK(holds(got, "\r\nEndpoint-Load-Metrics: TEXT named_metrics.kv_cache_usage_perc=0.5\r\n"));
    CHECK_FALSE(holds(got, "\r\nendpoint-load-metrics:"));
}
