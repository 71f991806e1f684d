// Labels stay bounded, gauges are read when asked, and what is not an exchange is told too.

#include <set>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

std::set<std::string> models_in(const Scrape& s) {
    std::set<std::string> models;
    for (const auto& [series, value] : s.all()) {
        const std::size_t begin = series.find("model=\"");
        if (begin != std::string::npos)
            models.insert(series.substr(begin + 7, series.find('"', begin + 7) - begin - 7));
    }
    return models;
}

void serve(Rig& rig, std::string_view model, int status = 200) {
    Driven d(rig);
    d.until_sent(model);
    d.meter.answer_head(status, "text/event-stream", "", at(40));
    d.read(50, tokens(1));
    d.meter.upstream_done(at(60));
    d.end(60, Outcome::ok, status);
}

TEST_CASE("five hundred model names leave the series bounded") {
    Rig rig;  // room for 4, one of them taken by the config
    for (int i = 0; i < 500; ++i)
        serve(rig, "model-" + std::to_string(i));
    const Scrape s = rig.scrape();
    CHECK(models_in(s) == std::set<std::string>{"m", "unknown", "other", "model-0", "model-1", "model-2"});
    CHECK(s(R"(noren_metrics_label_overflow_total{label="model"})") == 497);
    CHECK(s(R"(noren_output_tokens_total{model="other",source="events"})") == 497);
    CHECK(s(R"(noren_output_tokens_total{model="model-1",source="events"})") == 1);
    const std::size_t before = s.size();
    for (int i = 500; i < 1000; ++i)
        serve(rig, "model-" + std::to_string(i));
    CHECK(rig.scrape().size() == before);
}

TEST_CASE("names that the engine refuses use no label up") {
    Rig rig;
    for (int i = 0; i < 50; ++i)
        serve(rig, "invented-" + std::to_string(i), 404);
    Scrape s = rig.scrape();
    CHECK(models_in(s) == std::set<std::string>{"m", "unknown", "other"});
    CHECK(
        s(R"(noren_requests_total{model="other",endpoint="chat_completions",code="404",outcome="bad_request"})") ==
        50);
    CHECK(s(R"(noren_metrics_label_overflow_total{label="model"})") == 0);  // there was room
    serve(rig, "real");
    CHECK(models_in(rig.scrape()).count("real") == 1);
}

TEST_CASE("configured models have their labels whatever the room") {
    const Telemetry telemetry({{"a", "b", "c"}, 1, "", "", ""});
    const auto models = models_in(Scrape(telemetry));
    CHECK(models == std::set<std::string>{"a", "b", "c", "unknown", "other"});
}

TEST_CASE("other models and another number while running") {
    Rig rig;  // m, and room for three more
    for (const char* name : {"a", "b", "c", "d"})
        serve(rig, name);
    CHECK(models_in(rig.scrape()) == std::set<std::string>{"m", "a", "b", "c", "unknown", "other"});

    // Those that are named now have their labels though all are taken, and at 0 before the first request.
    rig.telemetry.set_models({"d", "e"}, 4);
    CHECK(rig.scrape()(R"(noren_requests_total{model="e",endpoint="messages",code="200",outcome="ok"})") ==
          0);
    serve(rig, "d");
    serve(rig, "f");
    CHECK(models_in(rig.scrape()) == std::set<std::string>{"m", "a", "b", "c", "d", "e", "unknown", "other"});

    // More room; and then less than there is in use, which takes nothing away.
    rig.telemetry.set_models({}, 7);
    serve(rig, "f");
    serve(rig, "g");
    rig.telemetry.set_models({}, 1);
    serve(rig, "a");
    serve(rig, "h");
    const Scrape s = rig.scrape();
    CHECK(models_in(s) == std::set<std::string>{"m", "a", "b", "c", "d", "e", "f", "unknown", "other"});
    CHECK(s(R"(noren_output_tokens_total{model="a",source="events"})") == 2);
    CHECK(s(R"(noren_output_tokens_total{model="other",source="events"})") == 4);
}

TEST_CASE("a request without a model is unknown; the names of our own labels are no way around") {
    Rig rig;
    serve(rig, "");
    serve(rig, "unknown");
    serve(rig, "other");
    const Scrape s = rig.scrape();
    CHECK(s(R"(noren_output_tokens_total{model="unknown",source="events"})") == 2);
    CHECK(s(R"(noren_output_tokens_total{model="other",source="events"})") == 1);
    CHECK(s(R"(noren_metrics_label_overflow_total{label="model"})") == 0);
}

TEST_CASE("a model that only the answer names is its label") {
    Rig rig;
    Driven d(rig);
    d.until_sent("");
    d.stream_head(40);
    d.read(50, "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n");
    d.whole(60);
    CHECK(rig.scrape()(R"(noren_time_to_first_token_seconds_count{model="m"})") == 1);
}

TEST_CASE("label values are UTF-8 without control characters, of bounded length") {
    Rig rig;  // room for three
    serve(rig, std::string_view("a\nb\x01\x7f\0\xff\u2028\u0085\u00a0", 14));
    serve(rig, std::string(5000, 'x'));
    serve(rig, std::string(255, 'y') + "\u00e9");
    CHECK(models_in(rig.scrape()) == std::set<std::string>{"m", "unknown", "other", "a_b___\ufffd__\u00a0",
                                                           std::string(256, 'x'),
                                                           std::string(255, 'y') + "\ufffd"});
}

TEST_CASE("models whose names differ in letters beyond ASCII have labels that do") {
    Rig rig;
    for (const char* name : {"qwen-\u65e5\u672c", "qwen-\u4e2d\u6587", "caf\u00e9"})
        serve(rig, name);
    CHECK(models_in(rig.scrape()) == std::set<std::string>{"m", "unknown", "other", "qwen-\u65e5\u672c",
                                                           "qwen-\u4e2d\u6587", "caf\u00e9"});
    const Scrape s = rig.scrape();
    CHECK(s("noren_output_tokens_total{model=\"caf\u00e9\",source=\"events\"}") == 1);
}

TEST_CASE("sampled gauges are read at each scrape, and may be absent") {
    Rig rig;
    double depth = 3;
    std::optional<double> ratio;
    rig.telemetry.sample("noren_queued_requests", "Waiting", {{{}, [&] { return std::optional(depth); }}});
    rig.telemetry.sample("noren_saturation_ratio", "Ratio", {{{}, [&] { return ratio; }}});
    rig.telemetry.sample("noren_upstream_connections", "Connections",
                         {{{{"state", "active"}}, [] { return std::optional(1.0); }},
                          {{{"state", "idle"}}, [] { return std::optional(7.0); }}});
    rig.telemetry.sample_counter("noren_log_lines_dropped_total", "Lost", [] { return 5.0; });
    CHECK(rig.scrape()("noren_queued_requests") == 3);
    depth = 4;
    CHECK(rig.scrape()("noren_queued_requests") == 4);
    CHECK(rig.telemetry.exposition().find("noren_saturation_ratio") == std::string::npos);
    ratio = 0.5;
    CHECK(rig.scrape()("noren_saturation_ratio") == 0.5);
    CHECK(rig.scrape()(R"(noren_upstream_connections{state="idle"})") == 7);
    CHECK(rig.telemetry.exposition().find("# TYPE noren_log_lines_dropped_total counter") !=
          std::string::npos);
    CHECK(rig.telemetry.exposition().find("# TYPE noren_queued_requests gauge") != std::string::npos);
}

TEST_CASE("connections to the engine") {
    Rig rig;
    rig.telemetry.upstream_connect(true, std::chrono::microseconds(700));
    rig.telemetry.upstream_connect(false, std::chrono::seconds(5));
    const Scrape s = rig.scrape();
    CHECK(s(R"(noren_upstream_connects_total{result="ok"})") == 1);
    CHECK(s(R"(noren_upstream_connects_total{result="error"})") == 1);
    CHECK(s("noren_upstream_connect_seconds_count") == 1);  // a give-up time is no connect time
    CHECK(s("noren_upstream_connect_seconds_sum") == Approx(0.0007));
}

TEST_CASE("looks at the engine's metrics page, with the bytes they brought") {
    Rig rig;
    rig.telemetry.page_fetch("ok", 1'000);
    rig.telemetry.page_fetch("too_large", 0);
    rig.telemetry.page_share();
    const Scrape s = rig.scrape();
    CHECK(s(R"(noren_engine_page_fetches_total{result="ok"})") == 1);
    CHECK(s(R"(noren_engine_page_fetches_total{result="too_large"})") == 1);
    CHECK(s("noren_engine_page_shares_total") == 1);
    CHECK(s(R"(noren_received_bytes_total{side="upstream"})") == 1'000);
}

TEST_CASE("reloads: the last one's success, and when a config was last taken over") {
    using Wall = std::chrono::system_clock::time_point;
    Rig rig;
    rig.telemetry.config_loaded(Wall(std::chrono::milliseconds(1'700'000'000'500)));
    Scrape s = rig.scrape();
    CHECK(s("noren_config_last_reload_successful") == 1);
    CHECK(s("noren_config_last_reload_success_timestamp_seconds") == Approx(1'700'000'000.5).epsilon(1e-12));
    CHECK(s(R"(noren_config_reloads_total{result="ok"})") == 0);  // the start is no reload

    rig.telemetry.config_reload(false, Wall(std::chrono::seconds(1'800'000'000)));
    s = rig.scrape();
    CHECK(s("noren_config_last_reload_successful") == 0);
    CHECK(s("noren_config_last_reload_success_timestamp_seconds") == Approx(1'700'000'000.5).epsilon(1e-12));
    CHECK(s(R"(noren_config_reloads_total{result="error"})") == 1);

    rig.telemetry.config_reload(true, Wall(std::chrono::seconds(1'900'000'000)));
    s = rig.scrape();
    CHECK(s("noren_config_last_reload_successful") == 1);
    CHECK(s("noren_config_last_reload_success_timestamp_seconds") == 1'900'000'000);
    CHECK(s(R"(noren_config_reloads_total{result="ok"})") == 1);

    rig.telemetry.config_restart_required(true);
    CHECK(rig.scrape()("noren_config_restart_required") == 1);
    rig.telemetry.config_restart_required(false);
    CHECK(rig.scrape()("noren_config_restart_required") == 0);
}

TEST_CASE("a head that was refused is a request, a failure and a log line") {
    Rig rig;
    rig.telemetry.refused_head(431, Outcome::bad_request, "bad_request", 109);
    const Scrape s = rig.scrape();
    CHECK(
        s(R"(noren_requests_total{model="unknown",endpoint="passthrough",code="431",outcome="bad_request"})") ==
        1);
    CHECK(s(R"(noren_failures_total{reason="bad_request"})") == 1);
    CHECK(s(R"(noren_sent_bytes_total{side="client"})") == 109);
    REQUIRE(rig.log.size() == 1);
    CHECK(rig.log[0].find(R"("level":"warning","msg":"refused before there was a request","status":431,)"
                          R"("outcome":"bad_request","reason":"bad_request"})") != std::string::npos);
}

TEST_CASE("figures of the process are those of this process") {
    Rig rig;
    const Scrape before = rig.scrape();
    CHECK(before("process_resident_memory_bytes") > 1e6);
    CHECK(before("process_virtual_memory_bytes") >= before("process_resident_memory_bytes"));
    CHECK(before("process_threads") >= 1);
    CHECK(before("process_open_fds") >= 3);
    CHECK(before("process_open_fds") <= before("process_max_fds"));
    const auto now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    CHECK(before("process_start_time_seconds") <= now + 2);  // the kernel's boot time is in whole seconds
    CHECK(before("process_start_time_seconds") > now - 3600);

    volatile std::uint64_t work = 0;
    const double cpu = before("process_cpu_seconds_total");
    while (rig.scrape()("process_cpu_seconds_total") < cpu + 0.03)
        for (int i = 0; i < 1'000'000; ++i)
            work = work + 1;
    CHECK(rig.scrape()("process_cpu_seconds_total") >= cpu + 0.03);
}

}  // namespace
}  // namespace noren::metrics
