#include "metrics/exchange_meter.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "metrics/exchange_state.hpp"
#include "metrics/prefetch.hpp"

namespace noren::metrics {

namespace {
constexpr std::string_view k_websocket = "websocket";
}  // namespace

ModelSeries& ExchangeMeter::State::series() {
    if (!model_series) {
        if (model.empty() && observer) model = observer->observation().model.value_or(std::string());
        model_series = &telemetry.model(model, upstream_status >= 200 && upstream_status < 300);
    }
    return *model_series;
}

/// events were complete with the read that ended at `at`.
void ExchangeMeter::State::stamp(std::uint32_t events, TimePoint at) {
    if (events == 0) return;
    if (tokens.events() == 0) first_token(at);
    record_gaps(tokens.on_events(events, at));
    series().output_tokens_events.Increment(events);
}

/// TTFT is written at once: a stream that breaks later had its first token all the same.
void ExchangeMeter::State::first_token(TimePoint at) {
    awaiting.reset();
    if (stages.current() == Stage::stall) {
        before_stall = Stage::decode;
    } else {
        stages.enter(Stage::decode, at);
    }
    series().ttft.Observe(seconds(at - began));
    if (sent_at) series().upstream_ttft.Observe(seconds(at - *sent_at));
}

/// With several choices the gaps between their interleaved tokens are nobody's latency.
void ExchangeMeter::State::record_gaps(const TokenClock::Gaps& gaps) {
    if (gaps.count > 0 && choices <= 1) series().itl.Observe(gaps.each, gaps.count);
}

/// Without memory for it the answer goes on unobserved, and says so.
void ExchangeMeter::State::stop_observing() noexcept {
    observer_over = true;
    telemetry.process().unobserved.add("memory");
}

/// Tells the observer that no more comes, once; a last event without its end mark is complete with that.
void ExchangeMeter::State::answer_ended() {
    if (observer && !std::exchange(observer_over, true)) fresh_events += observer->finish();
}

Phase ExchangeMeter::State::phase() const {
    // An answer that is whole here has passed its prefill, streamed or not.
    if (tokens.events() > 0 || upstream_over) return Phase::decode;
    switch (stages.current() == Stage::stall ? before_stall : stages.current()) {
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

ExchangeMeter::ExchangeMeter(Telemetry& telemetry, ApiEndpoint endpoint, bool gated,
                             std::string_view request_id, std::string_view method, std::string_view path,
                             TimePoint at)
    : state_(std::make_unique<State>(telemetry, endpoint, gated, request_id, method, path, at)) {}

ExchangeMeter::~ExchangeMeter() {
    if (state_->finished) return;
    try {
        finish({Outcome::internal_error, 0, "internal_error"}, {}, Clock::now());
    } catch (const std::bad_alloc&) {
        // Most likely why it was not finished in the first place. Its gauges go back all the same.
    }
}

void ExchangeMeter::queued(TimePoint at, bool body_whole) {
    state_->queued_at = at;
    state_->body_whole = body_whole;
    state_->stages.enter(Stage::queue, at);
}

void ExchangeMeter::admitted(TimePoint at) {
    State& s = *state_;
    s.stages.enter(Stage::connect, at);
    s.admitted = true;
    if (!s.gated) return;
    s.awaiting.emplace(s.telemetry.process().awaiting_first_token);
    if (s.queued_at) s.telemetry.process().queue_wait.Observe(seconds(at - *s.queued_at));
}

void ExchangeMeter::connected(TimePoint at, bool reused) {
    State& s = *state_;
    s.connected_at = at;
    s.reused = reused;
    s.stages.enter(Stage::upload, at);
}

void ExchangeMeter::sent(TimePoint at) {
    State& s = *state_;
    if (s.stages.current() == Stage::upload) s.stages.enter(Stage::prefill, at);
    // The rest of the way from ready to sent is queue wait and connect, which have figures of their own. A
    // request that is sent a second time, because a reused connection was dead, is not counted twice.
    if (s.gated && s.body_whole && s.connected_at && !s.sent_at)
        s.telemetry.process().proxy_overhead.Observe(seconds(at - *s.connected_at));
    s.sent_at = at;
}

void ExchangeMeter::asked(std::string_view model, std::int64_t choices, bool stream,
                          std::int64_t of_each_prompt) {
    state_->model = model;
    state_->choices = choices;
    state_->stream_asked = stream;
    state_->of_each_prompt = of_each_prompt;
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

void ExchangeMeter::shared_awaited(TimePoint at) {
    state_->admitted = true;
    state_->stages.enter(Stage::prefill, at);
}

void ExchangeMeter::shared_answer(int status, TimePoint at) {
    answer_head(status, {}, {}, at);
    upstream_done(at);
}

void ExchangeMeter::switched(std::string_view protocol, TimePoint at) {
    state_->stages.enter(Stage::decode, at);
    ProcessWide& process = state_->telemetry.process();
    const bool websocket = std::equal(protocol.begin(), protocol.end(), k_websocket.begin(),
                                      k_websocket.end(), [](char a, char b) { return (a | 0x20) == b; });
    process.upgrades.add(websocket ? k_websocket : "other");
    state_->tunnel.emplace(process.tunnels);
}

void ExchangeMeter::prefetch() const noexcept {
    metrics::prefetch(state_.get(), sizeof(State));
    if (state_->observer) state_->observer->prefetch();
}

void ExchangeMeter::body(std::string_view piece) noexcept {
    State& s = *state_;
    if (!s.observer || s.observer_over) return;
    try {
        s.fresh_events += s.observer->feed(piece);
    } catch (const std::bad_alloc&) {
        s.stop_observing();
    }
}

void ExchangeMeter::mark(TimePoint at) noexcept {
    try {
        state_->stamp(std::exchange(state_->fresh_events, 0), at);
    } catch (const std::bad_alloc&) {
        state_->stop_observing();
    }
}

void ExchangeMeter::stalled(TimePoint at) noexcept {
    State& s = *state_;
    if (s.stages.current() == Stage::stall) return;
    s.before_stall = s.stages.current();
    s.stages.enter(Stage::stall, at);
    if (s.gated && !s.upstream_over) s.stalled.emplace(s.telemetry.process().stalled);
}

void ExchangeMeter::resumed(TimePoint at) noexcept {
    State& s = *state_;
    if (s.stages.current() == Stage::stall) s.stages.enter(s.before_stall, at);
    s.stalled.reset();
}

void ExchangeMeter::upstream_done(TimePoint at) {
    state_->answer_ended();
    mark(at);
    upstream_broken();
}

void ExchangeMeter::upstream_broken() noexcept {
    State& s = *state_;
    s.awaiting.reset();
    s.stalled.reset();
    s.upstream_over = true;
}

Phase ExchangeMeter::phase() const noexcept {
    return state_->phase();
}

bool ExchangeMeter::finished() const noexcept {
    return state_->finished;
}

void ExchangeMeter::finish(const Ending& ending, const ByteCounts& bytes, TimePoint at) {
    State& s = *state_;
    if (std::exchange(s.finished, true)) return;
    const Phase left_in = s.phase();
    s.awaiting.reset();
    s.stalled.reset();
    s.answer_ended();
    // A cut answer may end in a whole event without its end mark: a token, but nobody knows when it came.
    if (s.fresh_events > 0) s.series().output_tokens_events.Increment(std::exchange(s.fresh_events, 0));
    s.record_gaps(s.tokens.settle());
    s.stages.enter(s.stages.current(), at);
    const Observation seen = s.observer ? s.observer->observation(s.of_each_prompt) : Observation();
    s.record({s.refined(ending, seen), seen, bytes, at, left_in});
    s.tunnel.reset();
    s.inflight.reset();
}

}  // namespace noren::metrics
