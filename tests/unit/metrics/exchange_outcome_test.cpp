// How exchanges end, whose fault that was, and that every gauge comes back.

#include <optional>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

double requests(const Scrape& s, std::string_view model, std::string_view code, std::string_view outcome) {
    const std::string series = "noren_requests_total{model=\"" + std::string(model) +
                               "\",endpoint=\"chat_completions\",code=\"" + std::string(code) +
                               "\",outcome=\"" + std::string(outcome) + "\"}";
    return s.has(series) ? s(series) : 0;
}

double upstream_errors(const Scrape& s, std::string_view reason) {
    return s("noren_upstream_errors_total{reason=\"" + std::string(reason) + "\"}");
}

double all_of(const Scrape& s, std::string_view name) {
    double sum = 0;
    for (const auto& [series, value] : s.all())
        if (series.substr(0, series.find('{')) == name) sum += value;
    return sum;
}

TEST_CASE("a whole answer below 400 is ok") {
    Stream d(40);
    d.read(50, tokens(1));  // no end marker: the transport said it is whole
    d.whole(60);
    const Scrape s = d.scrape();
    CHECK(requests(s, "m", "200", "ok") == 1);
    CHECK(all_of(s, "noren_requests_total") == 1);
    CHECK(all_of(s, "noren_upstream_errors_total") == 0);
    CHECK(all_of(s, "noren_failures_total") == 0);
}

TEST_CASE("the engine's status decides over a relayed answer") {
    Rig rig;
    struct Case {
        int status;
        const char *code, *outcome;
        double http_5xx;
    };
    const auto wanted = GENERATE(Case{500, "500", "upstream_error", 1}, Case{503, "503", "upstream_error", 1},
                                 Case{400, "400", "bad_request", 0}, Case{429, "429", "bad_request", 0},
                                 Case{204, "204", "ok", 0}, Case{302, "302", "ok", 0});
    Driven d(rig);
    d.until_sent();
    d.meter.answer_head(wanted.status, "application/json", "", at(40));
    d.read(40, R"({"error":{"message":"no"}})");
    d.meter.upstream_done(at(40));
    if (wanted.status < 400) {
        // An error object counts whatever the status says; these answers are to have none.
        Driven clean(rig);
        clean.until_sent();
        clean.meter.answer_head(wanted.status, "application/json", "", at(40));
        clean.meter.upstream_done(at(40));
        clean.end(41, Outcome::ok, wanted.status);
        d.end(41, Outcome::ok, wanted.status);
        CHECK(requests(rig.scrape(), "m", wanted.code, "upstream_error") == 1);
    } else {
        d.end(41, Outcome::ok, wanted.status);
    }
    const Scrape s = rig.scrape();
    CHECK(requests(s, "m", wanted.code, wanted.outcome) == 1);
    CHECK(upstream_errors(s, "http_5xx") == wanted.http_5xx);
    CHECK(s(R"(noren_request_duration_seconds_count{model="m",outcome="ok"})") +
              s(R"(noren_request_duration_seconds_count{model="m",outcome="error"})") ==
          (wanted.status < 400 ? 2 : 1));
}

TEST_CASE("an error inside a 200 stream is the engine's fault, also if the client leaves on it") {
    const bool leaves = GENERATE(false, true);
    Stream d(40);
    d.read(50, tokens(1));
    d.read(60, "data: {\"error\":{\"message\":\"out of memory\",\"code\":500}}\n\n");
    if (leaves) {
        d.end(61, Outcome::client_closed, 200, "client_closed");
    } else {
        d.whole(61);
    }
    const Scrape s = d.scrape();
    CHECK(requests(s, "m", "200", "upstream_error") == 1);
    CHECK(upstream_errors(s, "stream_error") == 1);
    CHECK(all_of(s, "noren_upstream_errors_total") == 1);
    CHECK(s(R"(noren_request_duration_seconds_count{model="m",outcome="error"})") == 1);
    CHECK(all_of(s, "noren_client_disconnects_total") == 0);
    CHECK(s(R"(noren_time_per_output_token_seconds_count{model="m"})") == 0);
}

TEST_CASE("text that talks of errors is none") {
    Stream d(40);
    d.read(50, "data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"an error\"}}]}\n\n");
    d.whole(61);
    CHECK(requests(d.scrape(), "m", "200", "ok") == 1);
}

TEST_CASE("refused a place: counted, but in no latency figure") {
    struct Case {
        const char *reason, *label;
        int status;
    };
    const auto c = GENERATE(Case{"queue_full", "full", 429}, Case{"queue_timeout", "timeout", 429},
                            Case{"draining", "shutdown", 503});
    Rig rig;
    Driven d(rig);
    d.meter.asked("m", 1, true);
    d.meter.queued(at(10), true);
    d.end(60, Outcome::rejected, c.status, c.reason);
    const Scrape s = rig.scrape();
    CHECK(requests(s, "m", std::to_string(c.status), "rejected") == 1);
    CHECK(s("noren_queue_rejections_total{reason=\"" + std::string(c.label) + "\"}") == 1);
    CHECK(all_of(s, "noren_queue_rejections_total") == 1);
    CHECK(s("noren_failures_total{reason=\"" + std::string(c.reason) + "\"}") == 1);
    CHECK(all_of(s, "noren_request_duration_seconds_count") == 0);
    CHECK(all_of(s, "noren_request_stage_seconds_count") == 0);
    CHECK(s("noren_queue_wait_seconds_count") == 0);
}

TEST_CASE("cut by the end of a drain: it had its place, so it ran out of time") {
    Stream d(40);
    d.read(50, tokens(1));
    d.end(60, Outcome::rejected, 200, "draining");
    const Scrape s = d.scrape();
    CHECK(requests(s, "m", "200", "timeout") == 1);
    CHECK(all_of(s, "noren_queue_rejections_total") == 0);
    CHECK(s(R"(noren_failures_total{reason="draining"})") == 1);
    CHECK(s(R"(noren_request_duration_seconds_count{model="m",outcome="error"})") == 1);
}

TEST_CASE("faults of the engine by kind") {
    struct Case {
        const char *reason, *label;
        Outcome outcome;
        const char* name;
    };
    const auto c = GENERATE(Case{"upstream_connect", "connect", Outcome::upstream_error, "upstream_error"},
                            Case{"upstream_reset", "reset", Outcome::upstream_error, "upstream_error"},
                            Case{"upstream_timeout", "timeout", Outcome::timeout, "timeout"},
                            Case{"upstream_protocol", "protocol", Outcome::upstream_error, "upstream_error"});
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.end(60, c.outcome, 502, c.reason);
    const Scrape s = rig.scrape();
    CHECK(requests(s, "m", "502", c.name) == 1);
    CHECK(upstream_errors(s, c.label) == 1);
    CHECK(all_of(s, "noren_upstream_errors_total") == 1);
    CHECK(rig.logged_error());
}

TEST_CASE("limits that are not the engine's fault are no upstream error") {
    const auto* reason = GENERATE("stall_timeout", "body_timeout", "total_timeout");
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.end(60, Outcome::timeout, 504, reason);
    const Scrape s = rig.scrape();
    CHECK(all_of(s, "noren_upstream_errors_total") == 0);
    CHECK(s("noren_failures_total{reason=\"" + std::string(reason) + "\"}") == 1);
    CHECK_FALSE(rig.logged_error());
}

/// Steps of an exchange, up to the one at which its client leaves.
TEST_CASE("clients that leave, by where the request was") {
    struct Case {
        int steps;
        const char* phase;
    };
    const auto c = GENERATE(Case{0, "upload"}, Case{1, "queued"}, Case{2, "connect"}, Case{3, "upload"},
                            Case{4, "prefill"}, Case{5, "prefill"}, Case{6, "prefill"}, Case{7, "decode"},
                            Case{8, "decode"}, Case{9, "decode"});
    Rig rig;
    Driven d(rig);
    d.meter.asked("m", 1, true);
    if (c.steps >= 1) d.meter.queued(at(1), true);
    if (c.steps >= 2) d.meter.admitted(at(2));
    if (c.steps >= 3) d.meter.connected(at(3), false);
    if (c.steps >= 4) d.meter.sent(at(4));
    if (c.steps >= 5) d.stream_head(5);
    if (c.steps == 6) d.meter.stalled(at(6));
    if (c.steps >= 7) d.read(7, tokens(1));
    if (c.steps == 8) d.meter.stalled(at(8));
    if (c.steps == 9) d.meter.upstream_done(at(9));
    d.end(20, Outcome::client_closed, c.steps >= 5 ? 200 : 0, "client_closed");
    const Scrape s = rig.scrape();
    INFO(c.steps);
    CHECK(s("noren_client_disconnects_total{phase=\"" + std::string(c.phase) + "\"}") == 1);
    CHECK(all_of(s, "noren_client_disconnects_total") == 1);
    CHECK(all_of(s, "noren_upstream_errors_total") == 0);
    CHECK(requests(s, "m", c.steps >= 5 ? "200" : "000", "client_closed") == 1);
    CHECK(s("noren_inflight_requests") == 0);
    CHECK(s("noren_awaiting_first_token_requests") == 0);
}

TEST_CASE("a client that leaves while a whole plain answer is on its way to it is past the prefill") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.meter.answer_head(200, "application/json", "", at(40));
    CHECK(d.meter.phase() == Phase::prefill);
    d.meter.upstream_done(at(50));
    CHECK(d.meter.phase() == Phase::decode);
    d.end(60, Outcome::client_closed, 200, "client_closed");
    CHECK(rig.scrape()(R"(noren_client_disconnects_total{phase="decode"})") == 1);
}

TEST_CASE("gauges follow an exchange") {
    Rig rig;
    const auto gauges = [&](double inflight, double awaiting) {
        const Scrape s = rig.scrape();
        CHECK(s("noren_inflight_requests") == inflight);
        CHECK(s("noren_awaiting_first_token_requests") == awaiting);
    };
    std::optional<Driven> d(std::in_place, rig);
    gauges(1, 0);
    d->meter.queued(at(1), true);
    gauges(1, 0);
    d->meter.admitted(at(2));
    gauges(1, 1);
    d->meter.connected(at(3), false);
    d->meter.sent(at(4));
    d->stream_head(5);
    d->read(6, role_event());
    gauges(1, 1);
    d->read(7, tokens(1));
    gauges(1, 0);
    d->whole(8);
    gauges(0, 0);
    d.reset();
    gauges(0, 0);

    Driven plain(rig);
    plain.until_sent();
    plain.meter.answer_head(200, "application/json", "", at(40));
    gauges(1, 1);
    plain.meter.upstream_done(at(50));
    gauges(1, 0);  // the engine is done; the client still reads
    plain.end(60);
    gauges(0, 0);
}

TEST_CASE("a slow client holds the engine back until it reads or the engine is done") {
    Rig rig;
    const auto stalled = [&] { return rig.scrape()("noren_stalled_requests"); };
    Driven d(rig);
    d.until_sent();
    d.stream_head(40);
    CHECK(stalled() == 0);
    d.meter.stalled(at(50));
    CHECK(stalled() == 1);
    d.meter.resumed(at(60));
    CHECK(stalled() == 0);
    d.meter.stalled(at(70));
    d.meter.upstream_done(at(80));
    CHECK(stalled() == 0);
    d.meter.resumed(at(85));
    d.meter.stalled(at(90));  // the engine is done; the client still reads
    CHECK(stalled() == 0);
    d.end(100);
    CHECK(stalled() == 0);

    {
        Driven cut(rig);
        cut.until_sent();
        cut.meter.stalled(at(50));
        CHECK(stalled() == 1);
    }
    CHECK(stalled() == 0);

    Driven passed(rig, ApiEndpoint::passthrough, false);
    passed.meter.stalled(at(50));
    CHECK(stalled() == 0);
}

TEST_CASE("an exchange that nobody ended is a fault of ours, and its gauges come back") {
    Rig rig;
    {
        Driven d(rig);
        d.until_sent();
    }
    const Scrape s = rig.scrape();
    CHECK(all_of(s, "noren_requests_total") == 1);
    CHECK(s(R"(noren_failures_total{reason="internal_error"})") == 1);
    CHECK(s("noren_inflight_requests") == 0);
    CHECK(s("noren_awaiting_first_token_requests") == 0);
    CHECK(rig.logged_error());
}

TEST_CASE("an exchange ends once") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.end(50, Outcome::client_closed, 0, "client_closed");
    d.end(60, Outcome::ok, 200);
    CHECK(all_of(rig.scrape(), "noren_requests_total") == 1);
    CHECK(rig.log.size() == 1);
}

TEST_CASE("what is passed through is counted with its bytes, in no latency figure") {
    Rig rig;
    Driven d(rig, ApiEndpoint::passthrough, false);
    d.until_sent();
    d.stream_head(40);
    d.read(50, tokens(3));
    d.meter.upstream_done(at(50));
    d.meter.finish({Outcome::ok, 200, {}}, {10, 200, 201, 11}, at(51));
    const Scrape s = rig.scrape();
    CHECK(s(R"(noren_requests_total{model="m",endpoint="passthrough",code="200",outcome="ok"})") == 1);
    CHECK(s(R"(noren_received_bytes_total{side="client"})") == 10);
    CHECK(s(R"(noren_sent_bytes_total{side="client"})") == 200);
    CHECK(s(R"(noren_received_bytes_total{side="upstream"})") == 201);
    CHECK(s(R"(noren_sent_bytes_total{side="upstream"})") == 11);
    for (const char* count :
         {"noren_request_duration_seconds_count", "noren_time_to_first_token_seconds_count",
          "noren_queue_wait_seconds_count", "noren_proxy_overhead_seconds_count", "noren_output_tokens_total",
          "noren_request_stage_seconds_count"}) {
        INFO(count);
        CHECK(all_of(s, count) == 0);
    }
}

}  // namespace
}  // namespace noren::metrics
