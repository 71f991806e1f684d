// The end of an exchange: what its metrics and its log line say.

#include <cstddef>

#include "metrics/exchange_state.hpp"
#include "metrics/finish_reason.hpp"
#include "metrics/json_line.hpp"

namespace noren::metrics {
namespace {

double milliseconds(Duration d) {
    return seconds(d) * 1e3;
}

void add(prometheus::Counter& counter, const std::optional<std::int64_t>& value) {
    if (value && *value > 0) counter.Increment(static_cast<double>(*value));
}

void observe(Histogram& histogram, const std::optional<std::int64_t>& value) {
    if (value && *value > 0) histogram.Observe(static_cast<double>(*value));
}

/// The label of noren_upstream_errors_total for a reason of ours; empty if the engine is not to blame.
std::string_view upstream_fault(std::string_view reason) {
    constexpr std::string_view k_prefix = "upstream_";
    return reason.substr(0, k_prefix.size()) == k_prefix ? reason.substr(k_prefix.size())
                                                         : std::string_view();
}

std::string_view rejection(std::string_view reason) {
    if (reason == "queue_full") return "full";
    if (reason == "queue_timeout") return "timeout";
    if (reason == "draining") return "shutdown";
    return {};
}

/// Level follows cause: nobody is woken for a client that hung up, or for a queue that did its work.
std::string_view level_of(const Ending& ending) {
    switch (ending.outcome) {
        case Outcome::ok:
        case Outcome::client_closed:
            return "info";
        case Outcome::upstream_error:
        case Outcome::internal_error:
            return "error";
        case Outcome::timeout:
            return upstream_fault(ending.reason).empty() ? "warning" : "error";
        case Outcome::rejected:
        case Outcome::bad_request:
            break;
    }
    return "warning";
}

}  // namespace

/// How it ended, once all is known. The engine's own verdict decides over an answer that was relayed: 5xx, or
/// an error in a stream that began with 200, is its fault (also if the client left on reading it), any other
/// 4xx the request's. A missing end marker alone is no fault: the transport said that the answer is whole.
/// What was admitted and then cut by the end of a drain ran out of time; it was never refused a place.
/// Client libraries close as soon as they have read a stream's end marker, often before the last chunk: who
/// has the whole stream did not leave it.
Ending ExchangeMeter::State::refined(Ending ending, const Observation& seen) const {
    if (ending.outcome == Outcome::client_closed && ending.caught_up && streaming && seen.complete) {
        ending.outcome = Outcome::ok;
        ending.reason = {};
    }
    const bool engine_failed = upstream_status >= 500 || (seen.error && upstream_status < 400);
    if (ending.outcome == Outcome::ok || ending.outcome == Outcome::client_closed) {
        if (engine_failed) {
            ending.outcome = Outcome::upstream_error;
        } else if (ending.outcome == Outcome::ok && upstream_status >= 400) {
            ending.outcome = Outcome::bad_request;
        }
    }
    if (ending.outcome == Outcome::rejected && admitted) ending.outcome = Outcome::timeout;
    return ending;
}

void ExchangeMeter::State::record(const End& end) {
    series().requests(endpoint, end.how.status, end.how.outcome).Increment();
    record_times(end);
    record_tokens(end);
    record_causes(end);
    record_bytes(end.bytes);
    telemetry.log_access(log_line(end));
}

/// Duration and stages are observed together, so that the stages of all requests add up to their durations.
void ExchangeMeter::State::record_times(const End& end) {
    if (!gated || end.how.outcome == Outcome::rejected) return;
    const Folded folded = end.how.outcome == Outcome::ok              ? Folded::ok
                          : end.how.outcome == Outcome::client_closed ? Folded::cancelled
                                                                      : Folded::error;
    series().duration[static_cast<std::size_t>(folded)]->Observe(seconds(end.at - began));
    ProcessWide& process = telemetry.process();
    for (std::size_t i = 0; i < k_stage_count; ++i)
        process.stages[i]->Observe(seconds(stages.spent(static_cast<Stage>(i))));
    if (upstream_status != 0) process.write_stall.Observe(seconds(stages.spent(Stage::stall)));
}

std::optional<double> ExchangeMeter::State::time_per_output_token(const Observation& seen) const {
    if (choices > 1 || !seen.output_tokens) return std::nullopt;
    return tokens.time_per_output_token(*seen.output_tokens);
}

void ExchangeMeter::State::record_tokens(const End& end) {
    if (!observer) return;
    const Observation& seen = end.seen;
    ProcessWide& process = telemetry.process();
    if (seen.opaque) process.unobserved.add("encoding");
    if (seen.unparsed_events > 0) process.parse_errors.Increment(static_cast<double>(seen.unparsed_events));

    ModelSeries& figures = series();
    add(figures.prompt_tokens, seen.input_tokens);
    add(figures.prompt_cached_tokens, seen.cached_tokens);
    add(figures.reasoning_tokens, seen.reasoning_tokens);
    observe(figures.request_prompt_tokens, seen.input_tokens);
    observe(figures.request_output_tokens, seen.output_tokens);
    // The events have been counted as they came. Usage adds what they did not show; if it says less (an event
    // can carry a part of a token), the count stands: a counter cannot go back.
    if (seen.output_tokens)
        add(figures.output_tokens_usage, *seen.output_tokens - static_cast<std::int64_t>(seen.token_events));

    const bool generates = endpoint != ApiEndpoint::embeddings && endpoint != ApiEndpoint::rerank;
    if (generates && !seen.opaque && upstream_status < 400)
        figures.finish_reasons[finish_reason_index(seen.finish_reason)]->Increment();
    if (end.how.outcome != Outcome::ok) return;
    if (const auto tpot = time_per_output_token(seen)) {
        figures.tpot.Observe(*tpot);
        figures.tps.Observe(1.0 / *tpot);
    }
}

void ExchangeMeter::State::record_causes(const End& end) {
    ProcessWide& process = telemetry.process();
    const Ending& ending = end.how;
    if (ending.outcome == Outcome::client_closed) process.disconnects.add(name_of(end.left_in));
    if (upstream_status >= 500) process.upstream_errors.add("http_5xx");
    if (end.seen.error && upstream_status < 400) process.upstream_errors.add("stream_error");
    if (ending.reason.empty()) return;
    process.failures.add(ending.reason);
    process.upstream_errors.add(upstream_fault(ending.reason));
    if (ending.outcome == Outcome::rejected) process.rejections.add(rejection(ending.reason));
}

void ExchangeMeter::State::record_bytes(const ByteCounts& bytes) {
    ProcessWide& process = telemetry.process();
    process.received_bytes.add("client", static_cast<double>(bytes.from_client));
    process.received_bytes.add("upstream", static_cast<double>(bytes.from_upstream));
    process.sent_bytes.add("client", static_cast<double>(bytes.to_client));
    process.sent_bytes.add("upstream", static_cast<double>(bytes.to_upstream));
}

/// Everything an operator needs to say where a slow answer was slow, and nothing a client would not want
/// written down: no bodies, no queries, no keys.
std::string ExchangeMeter::State::log_line(const End& end) const {
    const Ending& ending = end.how;
    const Observation& seen = end.seen;
    JsonLine line;
    line.add("time", rfc3339_now()).add("level", level_of(ending)).add("msg", "exchange");
    line.add("request_id", request_id).add("method", method).add("path", path);
    line.add("endpoint", name_of(endpoint));
    if (!model.empty()) line.add("model", model);
    line.add("stream", observer ? streaming : stream_asked);
    line.add("status", std::int64_t{ending.status}).add("outcome", name_of(ending.outcome));
    if (!ending.reason.empty()) line.add("reason", ending.reason);
    if (!ending.detail.empty()) line.add("detail", ending.detail);
    if (ending.outcome == Outcome::client_closed) line.add("phase", name_of(end.left_in));
    if (seen.error && upstream_status < 400) line.add("engine_error", true);

    line.add("duration_ms", milliseconds(end.at - began));
    for (std::size_t i = 0; i < k_stage_count; ++i)
        line.add(k_stage_keys[i], milliseconds(stages.spent(static_cast<Stage>(i))));
    if (const auto first = tokens.first()) line.add("ttft_ms", milliseconds(*first - began));
    if (const auto tpot = time_per_output_token(seen))
        line.add("tpot_ms", *tpot * 1e3).add("tps", 1.0 / *tpot);

    line.add("input_tokens", seen.input_tokens).add("cached_tokens", seen.cached_tokens);
    line.add("output_tokens", seen.output_tokens);
    if (seen.output_tokens_source != TokenSource::none)
        line.add("output_tokens_source",
                 seen.output_tokens_source == TokenSource::usage ? "usage" : "events");
    line.add("reasoning_tokens", seen.reasoning_tokens);
    if (streaming)
        line.add("token_events", static_cast<std::int64_t>(seen.token_events)).add("complete", seen.complete);
    line.add("finish_reason", seen.finish_reason);

    line.add("bytes_from_client", static_cast<std::int64_t>(end.bytes.from_client));
    line.add("bytes_to_upstream", static_cast<std::int64_t>(end.bytes.to_upstream));
    line.add("bytes_from_upstream", static_cast<std::int64_t>(end.bytes.from_upstream));
    line.add("bytes_to_client", static_cast<std::int64_t>(end.bytes.to_client));
    if (connected_at) line.add("upstream_reused", reused);
    return std::move(line).finish();
}

}  // namespace noren::metrics
