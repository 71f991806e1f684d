#include "metrics/catalogue.hpp"

#include <algorithm>
#include <utility>

namespace noren::metrics {

namespace buckets {

Buckets ttft() {
    return {.001, .0025, .005, .01, .02, .03, .04, .06, .08, .1, .15, .2, .25, .3, .4,  .5,  .625, .75,
            1,    1.5,   2,    2.5, 3.5, 5,   7.5, 10,  15,  20, 30,  40, 60,  80, 120, 160, 320,  640};
}
Buckets itl() {
    return {.0005, .001, .002, .003, .004, .005, .0065, .008, .01, .0125, .015, .0175,
            .02,   .025, .03,  .035, .04,  .05,  .06,   .075, .1,  .15,   .2,   .3,
            .4,    .5,   .75,  1,    2.5,  5,    10,    20,   40,  80};
}
Buckets duration() {
    return {.05, .1, .2, .3, .5, .8, 1,  1.5, 2,   2.5, 3.5, 5,   7.5, 10,
            15,  20, 30, 40, 50, 60, 90, 120, 180, 240, 480, 960, 1920};
}
Buckets stage() {
    Buckets bounds = ttft();
    bounds.insert(bounds.end(), {960, 1920});
    return bounds;
}
Buckets queue() {
    return {.0001, .0005, .001, .005, .01, .025, .05, .1, .15, .25, .4, .5, .75, 1,   1.5,
            2,     2.5,   3.5,  5,    7.5, 10,   15,  20, 30,  40,  60, 80, 120, 160, 300};
}
Buckets connect() {
    return {.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5};
}
Buckets overhead() {
    return {.00001, .000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .05, .25};
}
Buckets tokens_per_second() {
    return {1,  2,  3,  5,  7.5, 10,  12.5, 15,  17.5, 20,  22.5, 25,  27.5, 30,  35,   40,
            45, 50, 60, 75, 90,  100, 125,  150, 200,  250, 300,  400, 500,  750, 1000, 2000};
}
Buckets token_count() {
    return {1,    4,    16,    64,    128,   256,    512,    1024,   2048,
            4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576};
}

}  // namespace buckets

namespace {

CounterFamily& counter(Registry& registry, const char* name, const char* help) {
    return registry.add<prometheus::Counter>(name, help);
}
HistogramFamily& histogram(Registry& registry, const char* name, const char* help) {
    return registry.add<Histogram>(name, help);
}
prometheus::Gauge& gauge(Registry& registry, const char* name, const char* help) {
    return registry.add<prometheus::Gauge>(name, help).Add({});
}

template <std::size_t n>
std::vector<std::string_view> all_of(const std::array<std::string_view, n>& names) {
    return {names.begin(), names.end()};
}

}  // namespace

ModelFamilies::ModelFamilies(Registry& r)
    : requests(
          counter(r, "noren_requests_total",
                  "Requests ended, by the status sent to the client (000: none was) and how they ended")),
      duration(histogram(
          r, "noren_request_duration_seconds",
          "Request head parsed to last byte written to the client, queue included; requests that were "
          "refused a place are left out")),
      ttft(histogram(
          r, "noren_time_to_first_token_seconds",
          "Time to first token, t_first - t_recv: request head parsed to first token event complete, "
          "streamed answers only")),
      upstream_ttft(histogram(r, "noren_upstream_time_to_first_token_seconds",
                              "The engine's share of it, t_first - t_sent: its own queue and the prefill")),
      itl(histogram(
          r, "noren_inter_token_latency_seconds",
          "Gaps between token events as read from the engine; k events in one read share the gap since the "
          "read before: gap/k, k times")),
      tpot(histogram(
          r, "noren_time_per_output_token_seconds",
          "Time per output token after the first, (t_last - t_first)/(N-1), of streams that ended ok with "
          "N >= 2 output tokens and one choice")),
      tps(histogram(r, "noren_request_output_tokens_per_second",
                    "Decode speed of one stream, (N-1)/(t_last - t_first): N tokens span N-1 intervals")),
      request_prompt_tokens(
          histogram(r, "noren_request_prompt_tokens", "Tokens of all prompts of a request, as reported")),
      request_output_tokens(histogram(r, "noren_request_output_tokens", "Output tokens of a request")),
      prompt_tokens(counter(r, "noren_prompt_tokens_total", "Prompt tokens, as reported by the engine")),
      prompt_cached_tokens(counter(r, "noren_prompt_cached_tokens_total",
                                   "Prompt tokens that the engine took from its prefix cache, as reported")),
      output_tokens(
          counter(r, "noren_output_tokens_total",
                  "Output tokens: token events as they come (source events), and at the end of each request "
                  "what its reported usage exceeds them by (source usage)")),
      reasoning_tokens(
          counter(r, "noren_reasoning_tokens_total", "Reasoning tokens, as reported by the engine")),
      finish_reasons(counter(r, "noren_finish_reasons_total", "Answers by the engine's own finish reason")) {}

ProcessWide::ProcessWide(Registry& r)
    : queue_wait(histogram(r, "noren_queue_wait_seconds",
                           "Ready to be admitted to admitted, of admitted requests; 0 is observed too")
                     .Add({}, buckets::queue())),
      proxy_overhead(
          histogram(
              r, "noren_proxy_overhead_seconds",
              "What noren itself adds before the engine has the request: sent - ready - queue wait - "
              "connect, of requests whose body was whole when they were ready; with a body larger than the "
              "kernel takes at once, the time in which the engine reads it as well")
              .Add({}, buckets::overhead())),
      connect(histogram(r, "noren_upstream_connect_seconds", "Connecting to the engine, new connections only")
                  .Add({}, buckets::connect())),
      write_stall(
          histogram(r, "noren_write_stall_seconds",
                    "Per request: time in which its client held it up: the read-ahead buffer full, or the "
                    "answer whole and not yet taken")
              .Add({}, buckets::queue())),
      inflight(gauge(r, "noren_inflight_requests", "Requests whose head was parsed and that have not ended")),
      tunnels(gauge(r, "noren_tunnels", "Connections that have switched protocols (WebSocket) and are open")),
      awaiting_first_token(
          gauge(r, "noren_awaiting_first_token_requests",
                "Admitted requests without output yet: in the engine's own queue, or in prefill")),
      stalled(gauge(r, "noren_stalled_requests",
                    "Running requests whose engine is held back now, because their client does not read")),
      disconnects(counter(r, "noren_client_disconnects_total",
                          "Clients that left before their answer was whole, by where the request was"),
                  "phase", all_of(k_phase_names)),
      connections_refused(counter(r, "noren_client_connections_refused_total",
                                  "Client connections closed as soon as they were accepted: "
                                  "downstream.max_connections (limit), max_connections_per_client "
                                  "(client_limit), or none to be had of what it takes"),
                          "reason", {"limit", "client_limit", "descriptors", "memory"}),
      upgrades(counter(r, "noren_upgrades_total", "Connections that switched protocols, by the new one"),
               "protocol", {"websocket", "other"}),
      failures(counter(r, "noren_failures_total",
                       "Requests that noren refused or ended itself, by the word in x-noren-reason"),
               "reason", all_of(k_failure_reasons)),
      rejections(counter(r, "noren_queue_rejections_total", "Requests that noren refused a place"), "reason",
                 {"full", "timeout", "shutdown"}),
      upstream_errors(
          counter(
              r, "noren_upstream_errors_total",
              "What went wrong on the engine's side; stream_error: an error in an answer that began well"),
          "reason", {"connect", "reset", "timeout", "tls", "protocol", "http_5xx", "stream_error"}),
      upstream_connects(
          counter(r, "noren_upstream_connects_total", "Connections to the engine that were tried"), "result",
          {"ok", "error"}),
      received_bytes(
          counter(r, "noren_received_bytes_total", "Body bytes received, by the side they came from"), "side",
          {"client", "upstream"}),
      sent_bytes(counter(r, "noren_sent_bytes_total",
                         "Body bytes sent, by the side they went to, noren's own answers included; of an "
                         "exchange that broke, without what was not taken any more"),
                 "side", {"client", "upstream"}),
      parse_errors(counter(r, "noren_stream_parse_errors_total",
                           "Events that were relayed but not understood: no JSON object, or over a bound")
                       .Add({})),
      unobserved(counter(r, "noren_unobserved_responses_total",
                         "Answers of generating requests that could not be looked into"),
                 "reason", {"encoding", "memory"}),
      model_overflow(counter(r, "noren_metrics_label_overflow_total",
                             "Requests counted under model other because all label values were taken")
                         .Add({{"label", "model"}})),
      reload_ok(gauge(r, "noren_config_last_reload_successful", "1 if the last load of the config was good")),
      reload_time(gauge(r, "noren_config_last_reload_success_timestamp_seconds",
                        "When a config was last taken over, in seconds since the epoch")),
      reloads(counter(r, "noren_config_reloads_total", "Reloads tried since start"), "result",
              {"ok", "error"}),
      restart_required(gauge(r, "noren_config_restart_required",
                             "1 if the file differs from what runs in a key that needs a restart")),
      tls_handshakes(
          counter(r, "noren_tls_handshakes_total",
                  "TLS handshakes with clients that ended, by how: done, the client spoke plain "
                  "HTTP, hung up, a certificate was missing or refused, nothing in common, too slow"),
          "result", {"ok", "plain_text", "closed", "certificate", "protocol", "timeout"}),
      tls_reloads(
          counter(r, "noren_tls_certificate_reloads_total",
                  "Changed TLS files that were taken over, or (error) refused, so that the ones before "
                  "stay in force"),
          "result", {"ok", "error"}),
      page_fetches(
          counter(
              r, "noren_engine_page_fetches_total",
              "Looks at the engine's metrics page, by how they ended: a page (ok), one with another status "
              "than 200, no connection, no trust, broken off, too late, no HTTP, above "
              "engine_metrics.max_size"),
          "result", {"ok", "status", "unreachable", "tls", "broken", "late", "malformed", "too_large"}),
      page_shares(counter(r, "noren_engine_page_shares_total",
                          "Requests for the engine's metrics page that were answered with a look at it that "
                          "somebody else had asked for")
                      .Add({})) {
    auto& stage_family =
        histogram(r, "noren_request_stage_seconds",
                  "Where a request's time went, in seconds; the stages of all requests add up to "
                  "noren_request_duration_seconds");
    for (std::size_t i = 0; i < k_stage_count; ++i)
        stages[i] = &stage_family.Add({{"stage", std::string(k_stage_names[i])}}, buckets::stage());
}

CounterSet::CounterSet(CounterFamily& family, const char* label, std::vector<std::string_view> values)
    : values_(std::move(values)) {
    for (const std::string_view value : values_)
        counters_.push_back(&family.Add({{label, std::string(value)}}));
}

void CounterSet::add(std::string_view value, double by) {
    if (prometheus::Counter* counter = find(value)) counter->Increment(by);
}

double CounterSet::count(std::string_view value) const {
    const prometheus::Counter* counter = find(value);
    return counter ? counter->Value() : 0;
}

prometheus::Counter* CounterSet::find(std::string_view value) const {
    const auto known = std::find(values_.begin(), values_.end(), value);
    return known == values_.end() ? nullptr : counters_[static_cast<std::size_t>(known - values_.begin())];
}

}  // namespace noren::metrics
