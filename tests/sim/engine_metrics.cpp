#include "tests/sim/engine_metrics.hpp"

#include <algorithm>

#include "tests/sim/json_text.hpp"

namespace sim {

namespace {

double seconds(TimePoint from, TimePoint to) {
    return std::chrono::duration<double>(to - from).count();
}

std::string real(double value) {
    char text[32];
    const int size = std::snprintf(text, sizeof text, "%.9g", value);
    return {text, static_cast<std::size_t>(size)};
}

}  // namespace

void EngineMetrics::Histogram::observe(double value) {
    const auto bucket = std::ranges::lower_bound(k_bounds, value) - k_bounds.begin();
    ++counts[static_cast<std::size_t>(bucket)];
    sum += value;
}

void EngineMetrics::record(const Truth& truth) {
    if (truth.outcome == "refused") return;
    ++(truth.outcome == "complete" ? stopped_ : aborted_);
    prompt_tokens_ += truth.prompt_tokens;
    generation_tokens_ += truth.output_tokens;
    if (truth.admitted && truth.body_read) queued_.observe(seconds(*truth.body_read, *truth.admitted));
    if (truth.outcome == "complete") whole_.observe(seconds(truth.arrival, truth.end));
    const Truth::Sent* previous = nullptr;
    for (const Truth::Sent& sent : truth.events) {
        if (sent.tokens == 0 || !truth.stream) continue;
        if (previous == nullptr) first_token_.observe(seconds(truth.arrival, sent.at));
        if (previous != nullptr) inter_token_.observe(seconds(previous->at, sent.at));
        previous = &sent;
    }
}

std::string EngineMetrics::page(const EngineGauges& gauges) const {
    std::string out;
    add_value(out, "vllm:num_requests_running", "gauge", "Number of requests in model execution batches.",
              std::to_string(gauges.running));
    add_value(out, "vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.",
              std::to_string(gauges.waiting));
    add_value(out, "vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.",
              real(gauges.kv_usage));
    add_value(out, "vllm:num_preemptions_total", "counter",
              "Cumulative number of preemptions from the engine.", "0");
    add_value(out, "vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.",
              std::to_string(prompt_tokens_));
    add_value(out, "vllm:generation_tokens_total", "counter", "Number of generation tokens processed.",
              std::to_string(generation_tokens_));
    add_value(out, "vllm:prefix_cache_queries_total", "counter",
              "Prefix cache queries, in terms of number of queried tokens.", std::to_string(prompt_tokens_));
    add_value(out, "vllm:prefix_cache_hits_total", "counter",
              "Prefix cache hits, in terms of number of cached tokens.", "0");  // there is no such cache
    out +=
        "# HELP vllm:request_success_total Count of finished requests.\n# TYPE vllm:request_success_total "
        "counter\n";
    for (const auto& [reason, count] : {std::pair("stop", stopped_), std::pair("abort", aborted_)}) {
        out += concat(R"(vllm:request_success_total{engine="0",finished_reason=")", reason,
                      R"(",model_name=)", quoted(model_), "} ", count, "\n");
    }
    add_histogram(out, "vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.",
                  first_token_);
    add_histogram(out, "vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.",
                  inter_token_);
    add_histogram(out, "vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.",
                  whole_);
    add_histogram(out, "vllm:request_queue_time_seconds",
                  "Histogram of time spent in WAITING phase for request.", queued_);
    return out;
}

void EngineMetrics::add_value(std::string& out, std::string_view name, std::string_view type,
                              std::string_view help, const std::string& value) const {
    out += concat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n", name,
                  R"({engine="0",model_name=)", quoted(model_), "} ", value, "\n");
}

void EngineMetrics::add_histogram(std::string& out, std::string_view name, std::string_view help,
                                  const Histogram& histogram) const {
    const std::string labels = concat(R"(engine="0",model_name=)", quoted(model_));
    out += concat("# HELP ", name, " ", help, "\n# TYPE ", name, " histogram\n");
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
        below += histogram.counts[i];
        const std::string bound = i < Histogram::k_bounds.size() ? real(Histogram::k_bounds[i]) : "+Inf";
        out += concat(name, "_bucket{", labels, R"(,le=")", bound, R"("} )", below, "\n");
    }
    out += concat(name, "_sum{", labels, "} ", real(histogram.sum), "\n", name, "_count{", labels, "} ",
                  below, "\n");
}

}  // namespace sim
