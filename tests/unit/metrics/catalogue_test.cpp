// What /metrics promises before the first request, and to the tools that read it.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

struct Expected {
    const char* family;
    std::vector<std::string> labels;  ///< of each series that has to be there; "" = none
};

std::vector<std::string> each(const char* label, const std::vector<std::string>& values,
                              const std::vector<std::string>& with = {""}) {
    std::vector<std::string> all;
    for (const std::string& prefix : with)
        for (const std::string& value : values)
            all.push_back(prefix + (prefix.empty() ? "" : ",") + label + "=\"" + value + "\"");
    return all;
}

/// The contract, written down a second time on purpose: a name or a label value that changes breaks
/// dashboards.
std::vector<Expected> expected_counters_and_gauges() {
    const auto models = each("model", {"m", "unknown", "other"});
    const std::vector<std::string> endpoints = {"chat_completions", "completions", "responses",  "messages",
                                                "embeddings",       "rerank",      "passthrough"};
    const auto ok = each("outcome", {"ok"}, each("code", {"200"}, each("endpoint", endpoints, models)));
    return {
        {"noren_requests_total", ok},
        {"noren_prompt_tokens_total", models},
        {"noren_prompt_cached_tokens_total", models},
        {"noren_output_tokens_total", each("source", {"usage", "events"}, models)},
        {"noren_reasoning_tokens_total", models},
        {"noren_finish_reasons_total",
         each("finish_reason", {"stop", "length", "tool_calls", "content_filter", "other", "none"}, models)},
        {"noren_inflight_requests", {""}},
        {"noren_tunnels", {""}},
        {"noren_client_connections_refused_total",
         each("reason", {"limit", "client_limit", "descriptors", "memory"})},
        {"noren_upgrades_total", each("protocol", {"websocket", "other"})},
        {"noren_awaiting_first_token_requests", {""}},
        {"noren_stalled_requests", {""}},
        {"noren_queue_rejections_total", each("reason", {"full", "timeout", "shutdown"})},
        {"noren_client_disconnects_total",
         each("phase", {"upload", "queued", "connect", "prefill", "decode"})},
        {"noren_upstream_errors_total",
         each("reason", {"connect", "reset", "timeout", "tls", "protocol", "http_5xx", "stream_error"})},
        {"noren_upstream_connects_total", each("result", {"ok", "error"})},
        {"noren_received_bytes_total", each("side", {"client", "upstream"})},
        {"noren_sent_bytes_total", each("side", {"client", "upstream"})},
        {"noren_stream_parse_errors_total", {""}},
        {"noren_unobserved_responses_total", each("reason", {"encoding", "memory"})},
        {"noren_metrics_label_overflow_total", each("label", {"model"})},
        {"noren_failures_total",
         each("reason", {"client_closed", "bad_request", "head_timeout", "body_timeout", "body_too_large",
                         "stall_timeout", "queue_full", "queue_timeout", "draining", "total_timeout",
                         "tunnel_timeout", "upstream_connect", "upstream_tls", "upstream_reset",
                         "upstream_timeout", "upstream_protocol", "internal_error"})},
        {"noren_config_last_reload_successful", {""}},
        {"noren_config_last_reload_success_timestamp_seconds", {""}},
        {"noren_config_reloads_total", each("result", {"ok", "error"})},
        {"noren_config_restart_required", {""}},
        {"noren_tls_handshakes_total",
         each("result", {"ok", "plain_text", "closed", "certificate", "protocol", "timeout"})},
        {"noren_tls_certificate_reloads_total", each("result", {"ok", "error"})},
        {"noren_engine_page_fetches_total",
         each("result", {"ok", "status", "unreachable", "tls", "broken", "late", "malformed", "too_large"})},
        {"noren_engine_page_shares_total", {""}},
    };
}

std::vector<Expected> expected_histograms() {
    const auto models = each("model", {"m", "unknown", "other"});
    return {
        {"noren_request_duration_seconds", each("outcome", {"ok", "error", "cancelled"}, models)},
        {"noren_time_to_first_token_seconds", models},
        {"noren_upstream_time_to_first_token_seconds", models},
        {"noren_inter_token_latency_seconds", models},
        {"noren_time_per_output_token_seconds", models},
        {"noren_request_output_tokens_per_second", models},
        {"noren_request_prompt_tokens", models},
        {"noren_request_output_tokens", models},
        {"noren_queue_wait_seconds", {""}},
        {"noren_proxy_overhead_seconds", {""}},
        {"noren_upstream_connect_seconds", {""}},
        {"noren_write_stall_seconds", {""}},
        {"noren_request_stage_seconds",
         each("stage", {"upload", "queue", "connect", "prefill", "decode", "stall"})},
    };
}

std::string series(const std::string& name, const std::string& labels) {
    return labels.empty() ? name : name + "{" + labels + "}";
}

TEST_CASE("every series is there at 0 before the first request, and no other") {
    Rig rig;
    const Scrape s = rig.scrape();
    std::size_t expected = 0;
    for (const Expected& family : expected_counters_and_gauges()) {
        for (const std::string& labels : family.labels) {
            INFO(series(family.family, labels));
            CHECK(s(series(family.family, labels)) == 0);
        }
        CHECK(s.count(family.family) == family.labels.size());
        expected += family.labels.size();
    }
    for (const Expected& family : expected_histograms()) {
        const std::string name = family.family;
        for (const std::string& labels : family.labels) {
            INFO(series(name, labels));
            CHECK(s(series(name + "_count", labels)) == 0);
            CHECK(s(series(name + "_sum", labels)) == 0);
            CHECK(s(series(name + "_bucket", labels + (labels.empty() ? "" : ",") + "le=\"+Inf\"")) == 0);
        }
        CHECK(s.count(name + "_count") == family.labels.size());
        expected += s.count(name + "_bucket") + s.count(name + "_sum") + s.count(name + "_count");
    }
    CHECK(s(R"(noren_build_info{version="0.1.0",revision="abc",compiler="gcc"})") == 1);
    const auto ours = std::count_if(s.all().begin(), s.all().end(),
                                    [](const auto& entry) { return entry.first.rfind("noren_", 0) == 0; });
    CHECK(static_cast<std::size_t>(ours) == expected + 1);
}

TEST_CASE("bounds are strictly increasing and hold the bounds others compare with") {
    const std::vector<Buckets> all = {
        buckets::ttft(),       buckets::itl(),     buckets::duration(), buckets::stage(),
        buckets::queue(),      buckets::connect(), buckets::overhead(), buckets::tokens_per_second(),
        buckets::token_count()};
    for (const Buckets& bounds : all) {
        CHECK(std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) == bounds.end());
        CHECK(bounds.front() > 0);
    }
    const auto holds = [](const Buckets& bounds, const Buckets& others) {
        return std::all_of(others.begin(), others.end(), [&](double bound) {
            return std::find(bounds.begin(), bounds.end(), bound) != bounds.end();
        });
    };
    // OpenTelemetry GenAI semantic conventions.
    CHECK(
        holds(buckets::ttft(), {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}));
    CHECK(holds(buckets::itl(), {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}));
    // Long prefills, fast engines and long answers are not all in the last bucket, or in the first.
    CHECK(buckets::ttft().back() > 120);
    CHECK(buckets::itl().front() < .001);
    CHECK(buckets::duration().back() > 30 * 60);
}

/// What histogram_quantile makes of samples in these buckets, relative to the truth.
double quantile_error(const Buckets& bounds, std::vector<double> samples, double q) {
    std::sort(samples.begin(), samples.end());
    const double rank = q * static_cast<double>(samples.size());
    double below = 0, lower = 0;
    for (const double bound : bounds) {
        const auto end = std::upper_bound(samples.begin(), samples.end(), bound);
        const auto cumulative = static_cast<double>(end - samples.begin());
        if (cumulative >= rank) {
            const double estimate = lower + (bound - lower) * (rank - below) / (cumulative - below);
            return estimate / samples[static_cast<std::size_t>(rank)] - 1;
        }
        below = cumulative;
        lower = bound;
    }
    return 1;  // off the scale
}

TEST_CASE("quantiles of usual latencies come out within the width of a bucket") {
    struct Case {
        const char* what;
        Buckets bounds;
        double median, sigma;
    };
    const std::vector<Case> cases = {
        {"TTFT 120 ms", buckets::ttft(), .120, .5}, {"TTFT 6 s", buckets::ttft(), 6, .7},
        {"ITL 4 ms", buckets::itl(), .004, .2},     {"ITL 8 ms", buckets::itl(), .008, .2},
        {"ITL 14 ms", buckets::itl(), .014, .2},    {"e2e 30 s", buckets::duration(), 30, .7}};
    std::mt19937 random(3);
    for (const Case& c : cases) {
        std::lognormal_distribution<double> latency(std::log(c.median), c.sigma);
        std::vector<double> samples(50'000);
        std::generate(samples.begin(), samples.end(), [&] { return latency(random); });
        for (const double q : {.5, .95, .99}) {
            INFO(c.what << " at " << q);
            CHECK(std::abs(quantile_error(c.bounds, samples, q)) < 0.12);
        }
    }
}

TEST_CASE("help is one plain line that states the formula") {
    Rig rig;
    const std::string text = rig.telemetry.exposition();
    std::size_t helps = 0;
    for (std::size_t at_line = 0; (at_line = text.find("# HELP ", at_line)) != std::string::npos; ++helps) {
        const std::string line = text.substr(at_line, text.find('\n', at_line) - at_line);
        INFO(line);
        CHECK(line.find('\\') == std::string::npos);
        CHECK(line.size() > line.find(' ', 7) + 5);
        at_line += line.size();
    }
    // Every family ours, build_info and seven process_*.
    CHECK(helps == expected_counters_and_gauges().size() + expected_histograms().size() + 1 + 7);
    CHECK(text.find("# HELP noren_time_to_first_token_seconds Time to first token, t_first - t_recv") !=
          std::string::npos);
    const auto help_of = [&](const std::string& name) {
        const std::size_t begin = text.find("# HELP " + name + " ");
        REQUIRE(begin != std::string::npos);
        return text.substr(begin, text.find('\n', begin) - begin);
    };
    CHECK(help_of("noren_time_per_output_token_seconds").find("(t_last - t_first)/(N-1)") !=
          std::string::npos);
    CHECK(help_of("noren_request_output_tokens_per_second").find("(N-1)/(t_last - t_first)") !=
          std::string::npos);
}

struct Finding {
    int exit = 0;
    std::string output;
};

Finding promtool_on(const std::string& text) {
    const auto base =
        std::filesystem::temp_directory_path() / ("noren-metrics-" + std::to_string(::getpid()));
    const std::string in = base.string() + ".txt", out = base.string() + ".out";
    std::ofstream(in, std::ios::binary) << text;
    Finding finding;
    finding.exit = std::system(("promtool check metrics <" + in + " >" + out + " 2>&1").c_str());
    std::ifstream result(out);
    finding.output.assign(std::istreambuf_iterator<char>(result), {});
    std::filesystem::remove(in);
    std::filesystem::remove(out);
    return finding;
}

TEST_CASE("promtool has nothing to say") {
    if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
        WARN("skipped: no promtool in PATH (Debian package prometheus)");
        return;
    }
    // It does find what is wrong, so that its silence means something.
    CHECK(promtool_on("ramen_ms 1\n").exit != 0);

    Rig rig;
    rig.telemetry.sample("noren_queued_requests", "Requests waiting for admission",
                         {{{}, [] { return std::optional(2.0); }}});
    rig.telemetry.sample_counter("noren_log_lines_dropped_total", "Log lines lost", [] { return 1.0; });
    const Finding fresh = promtool_on(rig.telemetry.exposition());
    CHECK(fresh.exit == 0);
    CHECK(fresh.output.empty());

    for (const char* model : {"m", "quote\"back\\slash\nline", "\xff\xfe", "ラーメン"}) {
        Driven d(rig);
        d.until_sent(model);
        d.stream_head(40);
        d.read(50, tokens(2));
        d.read(60, tokens(70) + usage_event(3, 80) + std::string(k_done));
        d.whole(61);
    }
    rig.telemetry.refused_head(400, Outcome::bad_request, "bad_request", 0);
    const Finding used = promtool_on(rig.telemetry.exposition());
    CHECK(used.exit == 0);
    CHECK(used.output.empty());
}

}  // namespace
}  // namespace noren::metrics
