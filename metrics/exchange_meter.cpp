#include "metrics/exchange_meter.hpp"

#include <algorithm>
#include <optional>

#include "metrics/access_log.hpp"
#include "metrics/telemetry.hpp"
#include "metrics/token_clock.hpp"

namespace noren::metrics {
namespace {

double milliseconds(Duration d) {
    return seconds(d) * 1e3;
}

std::size_t finish_reason_index(const std::optional<std::string>& reason) {
    if (!reason) return k_finish_reasons.size() - 1;  // none
    // The dialects' words for the same things.
    const std::string_view word =
        *reason == "end_turn" || *reason == "stop_sequence" || *reason == "eos_token" || *reason == "eos" ||
                *reason == "completed" || *reason == "COMPLETE"
            ? std::string_view("stop")
        : *reason == "max_tokens" || *reason == "limit" || *reason == "MAX_TOKENS" ||
                *reason == "max_output_tokens"
            ? std::string_view("length")
        : *reason == "tool_use" || *reason == "function_call" || *reason == "TOOL_CALL"
            ? std::string_view("tool_calls")
            : std::string_view(*reason);
    const auto known = std::find(k_finish_reasons.begin(), k_finish_reasons.end() - 2, word);
    return static_cast<std::size_t>(known - k_finish_reasons.begin());  // past the known ones: other
}

/// A gauge that is one higher for as long as this holds it.
class Held {
  public:
    explicit Held(prometheus::Gauge& gauge) : gauge_(&gauge) { gauge_->Increment(); }
    ~Held() { gauge_->Decrement(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

  private:
    prometheus::Gauge* gauge_;
};

}  // namespace

struct ExchangeMeter::State {
    State(Telemetry& t, Endpoint e, bool g, TimePoint at)
        : telemetry(t),
          endpoint(e),
          gated(g),
          began(at),
          stages(at),
          inflight(std::in_place, t.process().inflight) {}

    void first_token(TimePoint at);
    void flush_gaps();
    ModelSeries& series();
    Ending refined(Ending ending) const;
    void record_end(const Ending& ending, TimePoint at);
    void record_tokens(const Ending& ending);
    void record_failure(const Ending& ending);
    void log(const Ending& ending, const ByteCounts& bytes, TimePoint at) const;

    Telemetry& telemetry;
    const Endpoint endpoint;
    const bool gated;
    const TimePoint began;
    std::string request_id, method, path;

    StageClock stages;
    Stage before_stall = Stage::upload;
    std::optional<TimePoint> queued_at, connected_at, sent_at;
    std::optional<Duration> queue_wait;
    bool body_whole = false;
    bool reused = false;

    std::string model;
    std::int64_t choices = 1;
    bool stream_asked = false;
    int upstream_status = 0;

    std::optional<ResponseObserver> observer;
    Observation seen;
    bool streaming = false;
    TokenClock tokens;
    std::uint32_t fresh_events = 0;  ///< completed by body() since the last mark()
    ModelSeries* model_series = nullptr;

    std::optional<Held> inflight;
    std::optional<Held> awaiting;
    bool finished = false;
};

ModelSeries& ExchangeMeter::State::series() {
    if (!model_series) {
        if (model.empty() && observer) model = observer->observation().model.value_or(std::string());
        model_series = &telemetry.model(model, upstream_status >= 200 && upstream_status < 300);
    }
    return *model_series;
}

void ExchangeMeter::State::first_token(TimePoint at) {
    awaiting.reset();
    if (stages.current() == Stage::stall) {
        before_stall = Stage::decode;
    } else {
        stages.enter(Stage::decode, at);
    }
    if (!gated) return;
    series().ttft.Observe(seconds(at - began));
    if (sent_at) series().upstream_ttft.Observe(seconds(at - *sent_at));
}

void ExchangeMeter::State::flush_gaps() {
    const TokenClock::Bins& bins = tokens.bins();
    // With several choices the gaps between their interleaved tokens are nobody's latency.
    if (bins.total > 0 && gated && choices <= 1) {
        const std::vector<double> counts(bins.counts.begin(), bins.counts.end());
        series().itl.ObserveMultiple(counts, bins.sum);
    }
    tokens.clear_bins();
}

ExchangeMeter::ExchangeMeter(Telemetry& telemetry, Endpoint endpoint, bool gated, std::string_view request_id,
                             std::string_view method, std::string_view path, TimePoint at)
    : state_(std::make_unique<State>(telemetry, endpoint, gated, at)) {
    state_->request_id = request_id;
    state_->method = method;
    state_->path = path;
}

ExchangeMeter::~ExchangeMeter() {
    if (!state_->finished) finish({Outcome::internal_error, 0, "internal_error"}, {}, Clock::now());
}

void ExchangeMeter::queued(TimePoint at, bool body_whole) {
    state_->queued_at = at;
    state_->body_whole = body_whole;
    state_->stages.enter(Stage::queue, at);
}

void ExchangeMeter::admitted(TimePoint at) {
    State& s = *state_;
    s.stages.enter(Stage::connect, at);
    if (!s.gated) return;
    s.awaiting.emplace(s.telemetry.process().awaiting_first_token);
    if (!s.queued_at) return;
    s.queue_wait = at - *s.queued_at;
    s.telemetry.process().queue_wait.Observe(seconds(*s.queue_wait));
}

void ExchangeMeter::connected(TimePoint at, bool reused) {
    state_->connected_at = at;
    state_->reused = reused;
    state_->stages.enter(Stage::upload, at);
}

void ExchangeMeter::sent(TimePoint at) {
    State& s = *state_;
    s.sent_at = at;
    if (s.stages.current() == Stage::upload) s.stages.enter(Stage::prefill, at);
    if (s.gated && s.body_whole && s.connected_at)
        s.telemetry.process().proxy_overhead.Observe(seconds(at - *s.connected_at));
}

void ExchangeMeter::asked(std::string_view model, std::int64_t choices, bool stream) {
    state_->model = model;
    state_->choices = choices;
    state_->stream_asked = stream;
}

void ExchangeMeter::answer_head(int status, std::string_view content_type, std::string_view content_encoding,
                                TimePoint at) {
    State& s = *state_;
    s.upstream_status = status;
    // An answer to a request still on its way: the engine is at work, whatever the upload does.
    if (s.stages.current() == Stage::upload) s.stages.enter(Stage::prefill, at);
    if (!s.gated) return;
    s.observer.emplace(status, content_type, content_encoding);
    s.streaming = s.observer->observation().streaming;
}

void ExchangeMeter::body(std::string_view piece) noexcept {
    State& s = *state_;
    if (s.observer) s.fresh_events += s.observer->feed(piece);
}

void ExchangeMeter::mark(TimePoint at) noexcept {
    State& s = *state_;
    if (s.fresh_events == 0) return;
    const std::uint32_t events = std::exchange(s.fresh_events, 0);
    const bool first = s.tokens.events() == 0;
    s.tokens.on_events(events, at);
    if (first) {
        s.first_token(at);
        s.series().output_tokens_events.Increment(events);
        return;
    }
    s.series().output_tokens_events.Increment(events);
    if (s.tokens.flush_due()) s.flush_gaps();
}

void ExchangeMeter::stalled(TimePoint at) noexcept {
    State& s = *state_;
    if (s.stages.current() == Stage::stall) return;
    s.before_stall = s.stages.current();
    s.stages.enter(Stage::stall, at);
}

void ExchangeMeter::resumed(TimePoint at) noexcept {
    State& s = *state_;
    if (s.stages.current() == Stage::stall) s.stages.enter(s.before_stall, at);
}

void ExchangeMeter::upstream_done(TimePoint at) {
    State& s = *state_;
    s.awaiting.reset();
    if (!s.observer) return;
    s.fresh_events += s.observer->finish();
    mark(at);
}

Phase ExchangeMeter::phase() const noexcept {
    const State& s = *state_;
    if (s.tokens.events() > 0) return Phase::decode;
    switch (s.stages.current() == Stage::stall ? s.before_stall : s.stages.current()) {
        case Stage::upload:
            return Phase::upload;
        case Stage::queue:
            return Phase::queued;
        case Stage::connect:
            return Phase::connect;
        case Stage::prefill:
            return Phase::prefill;
        case Stage::decode:
        case Stage::stall:
            break;
    }
    return Phase::decode;
}

/// A whole answer can still say that it failed: by its status, or by an error in its stream.
Ending ExchangeMeter::State::refined(Ending ending) const {
    if (ending.outcome != Outcome::ok) return ending;
    if (upstream_status >= 500) {
        ending.outcome = Outcome::upstream_error;
    } else if (upstream_status >= 400) {
        ending.outcome = Outcome::bad_request;
    } else if (seen.error) {
        ending.outcome = Outcome::upstream_error;
    }
    return ending;
}

void ExchangeMeter::State::record_end(const Ending& ending, TimePoint at) {
    if (!gated || ending.outcome == Outcome::rejected) return;
    const std::size_t folded = ending.outcome == Outcome::ok              ? 0
                               : ending.outcome == Outcome::client_closed ? 2
                                                                          : 1;
    series().duration[folded]->Observe(seconds(at - began));
    for (std::size_t i = 0; i < k_stage_count; ++i)
        telemetry.process().stages[i]->Observe(seconds(stages.spent(static_cast<Stage>(i))));
    if (upstream_status != 0) telemetry.process().write_stall.Observe(seconds(stages.spent(Stage::stall)));
}

void ExchangeMeter::State::record_tokens(const Ending& ending) {
    if (!gated || !observer) return;
    ModelSeries& model_figures = series();
    if (seen.opaque) telemetry.process().unobserved.Add({{"reason", "encoding"}}).Increment();
    if (seen.unparsed_events > 0)
        telemetry.process().parse_errors.Increment(static_cast<double>(seen.unparsed_events));
    const auto count = [](prometheus::Counter& counter, const std::optional<std::int64_t>& value) {
        if (value && *value > 0) counter.Increment(static_cast<double>(*value));
    };
    count(model_figures.prompt_tokens, seen.input_tokens);
    count(model_figures.prompt_cached_tokens, seen.cached_tokens);
    count(model_figures.reasoning_tokens, seen.reasoning_tokens);
    const auto counted = static_cast<std::int64_t>(seen.token_events);
    if (seen.output_tokens && *seen.output_tokens > counted)
        model_figures.output_tokens_usage.Increment(static_cast<double>(*seen.output_tokens - counted));
    if (seen.input_tokens && *seen.input_tokens > 0)
        model_figures.request_prompt_tokens.Observe(static_cast<double>(*seen.input_tokens));
    if (seen.output_tokens && *seen.output_tokens > 0)
        model_figures.request_output_tokens.Observe(static_cast<double>(*seen.output_tokens));
    if (upstream_status < 400)
        model_figures.finish_reasons[finish_reason_index(seen.finish_reason)]->Increment();
    if (ending.outcome != Outcome::ok || choices > 1) return;
    if (const auto tpot = tokens.time_per_output_token(seen.output_tokens.value_or(0))) {
        model_figures.tpot.Observe(*tpot);
        model_figures.tps.Observe(1.0 / *tpot);
    }
}

void ExchangeMeter::State::record_failure(const Ending& ending) {
    ProcessWide& process = telemetry.process();
    const auto upstream_error = [&](const char* reason) {
        process.upstream_errors.Add({{"reason", reason}}).Increment();
    };
    if (upstream_status >= 500) upstream_error("http_5xx");
    if (ending.reason.empty()) return;
    telemetry.count_failure(ending.reason);
    const auto reject = [&](const char* reason) { process.rejections.Add({{"reason", reason}}).Increment(); };
    if (ending.reason == "queue_full") reject("full");
    if (ending.reason == "queue_timeout") reject("timeout");
    if (ending.reason == "draining") reject("shutdown");
    if (ending.reason == "upstream_connect") upstream_error("connect");
    if (ending.reason == "upstream_reset") upstream_error("reset");
    if (ending.reason == "upstream_timeout") upstream_error("timeout");
    if (ending.reason == "upstream_protocol") upstream_error("protocol");
}

void ExchangeMeter::finish(const Ending& told, const ByteCounts& bytes, TimePoint at) {
    State& s = *state_;
    if (std::exchange(s.finished, true)) return;
    const Phase at_phase = phase();
    if (s.observer) {
        // A cut answer may end in a whole event without its blank line: a token, but nobody knows when it
        // came.
        const std::uint32_t late = s.observer->finish();
        if (late > 0) s.series().output_tokens_events.Increment(late);
        s.seen = s.observer->observation();
    }
    const Ending ending = s.refined(told);
    s.stages.enter(s.stages.current(), at);
    s.awaiting.reset();
    s.flush_gaps();

    s.series().requests(s.endpoint, ending.status, ending.outcome).Increment();
    if (ending.outcome == Outcome::client_closed)
        s.telemetry.process().disconnects[static_cast<std::size_t>(at_phase)]->Increment();
    s.record_end(ending, at);
    s.record_tokens(ending);
    s.record_failure(ending);
    ProcessWide& process = s.telemetry.process();
    process.received_bytes.Add({{"side", "client"}}).Increment(static_cast<double>(bytes.from_client));
    process.received_bytes.Add({{"side", "upstream"}}).Increment(static_cast<double>(bytes.from_upstream));
    process.sent_bytes.Add({{"side", "client"}}).Increment(static_cast<double>(bytes.to_client));
    process.sent_bytes.Add({{"side", "upstream"}}).Increment(static_cast<double>(bytes.to_upstream));
    s.log(ending, bytes, at);
    s.inflight.reset();
}

void ExchangeMeter::State::log(const Ending& ending, const ByteCounts& bytes, TimePoint at) const {
    const bool ours_or_engines = ending.outcome == Outcome::internal_error ||
                                 ending.outcome == Outcome::upstream_error ||
                                 (ending.outcome == Outcome::timeout && ending.reason == "upstream_timeout");
    const char* level = ours_or_engines ? "error"
                        : ending.outcome == Outcome::ok || ending.outcome == Outcome::client_closed
                            ? "info"
                            : "warning";
    JsonLine line;
    line.add("time", rfc3339_now())
        .add("level", std::string_view(level))
        .add("msg", std::string_view("exchange"));
    line.add("request_id", request_id)
        .add("method", method)
        .add("path", path)
        .add("endpoint", name_of(endpoint));
    if (!model.empty()) line.add("model", model);
    line.add("stream", streaming)
        .add("status", std::int64_t{ending.status})
        .add("outcome", name_of(ending.outcome));
    if (!ending.reason.empty()) line.add("reason", ending.reason);
    line.add("duration_ms", milliseconds(at - began));
    for (std::size_t i = 0; i < k_stage_count; ++i)
        line.add(std::string(k_stage_names[i]) + "_ms", milliseconds(stages.spent(static_cast<Stage>(i))));
    if (streaming && tokens.first()) line.add("ttft_ms", milliseconds(*tokens.first() - began));
    if (const auto tpot = tokens.time_per_output_token(seen.output_tokens.value_or(0)))
        line.add("tpot_ms", *tpot * 1e3).add("tps", 1.0 / *tpot);
    line.add("input_tokens", seen.input_tokens).add("cached_tokens", seen.cached_tokens);
    line.add("output_tokens", seen.output_tokens);
    if (seen.output_tokens)
        line.add("output_tokens_source",
                 std::string_view(seen.output_tokens_source == TokenSource::usage ? "usage" : "events"));
    line.add("reasoning_tokens", seen.reasoning_tokens);
    if (streaming)
        line.add("token_events", static_cast<std::int64_t>(tokens.events())).add("complete", seen.complete);
    if (seen.finish_reason) line.add("finish_reason", *seen.finish_reason);
    if (seen.error && upstream_status < 400) line.add("engine_error", true);
    line.add("bytes_from_client", static_cast<std::int64_t>(bytes.from_client));
    line.add("bytes_to_client", static_cast<std::int64_t>(bytes.to_client));
    line.add("upstream_reused", reused);
    telemetry.log_access(std::move(line).finish(), ours_or_engines);
}

}  // namespace noren::metrics
