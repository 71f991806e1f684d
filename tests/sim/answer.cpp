#include "tests/sim/answer.hpp"

#include "tests/sim/answer_writer.hpp"
#include "tests/sim/dialects/dialect.hpp"

namespace sim {

namespace {

constexpr std::string_view k_failure = "the simulated engine failed as it was told to";

Timing timing_of(const Truth& truth, std::optional<TimePoint> first, TimePoint last) {
    const TimePoint start = truth.body_read.value_or(truth.arrival);
    if (!first) return {};
    return {*first - start, last - *first};
}

/// From the send times of the token events.
Timing timing_of(const Truth& truth) {
    std::optional<TimePoint> first;
    TimePoint last{};
    for (const Truth::Sent& sent : truth.events) {
        if (sent.tokens == 0) continue;
        if (!first) first = sent.at;
        last = sent.at;
    }
    return timing_of(truth, first, last);
}

bool must_fail_now(const Exchange& exchange) {
    return exchange.fault.is(Fault::Kind::error) && exchange.truth.token_events >= exchange.fault.at;
}

/// The middle of a stream: until the tokens are over or the error event is due.
net::awaitable<bool> stream_tokens(Exchange& exchange, AnswerWriter& writer, TokenFeed& feed,
                                   Dialect& dialect) {
    Events events;
    dialect.accepted(events);
    for (;;) {
        const bool sent = co_await writer.events(events);
        if (!sent) co_return false;
        events.clear();
        if (must_fail_now(exchange)) co_return true;
        if (exchange.fault.is(Fault::Kind::bad_chunk) && exchange.truth.token_events > 0) {
            co_await writer.break_chunk();
            co_return false;
        }
        const std::optional<Slice> slice = co_await feed.next();
        if (!slice) co_return !exchange.sleeper.cancelled();
        exchange.truth.admitted = feed.admitted_at();
        dialect.tokens(*slice, events);
    }
}

net::awaitable<bool> answer_stream(Exchange& exchange, TokenFeed& feed, Dialect& dialect) {
    AnswerWriter writer(exchange);
    const ResponseHead head{.type = dialect.stream_type(), .framing = Framing::chunked};
    bool going = co_await writer.head(head);
    if (going) going = co_await stream_tokens(exchange, writer, feed, dialect);
    const bool failing = going && must_fail_now(exchange);
    if (going) {
        Events events;
        if (failing) {
            dialect.failed(k_failure, events);
        } else {
            dialect.finished(timing_of(exchange.truth), events);
        }
        going = co_await writer.events(events);
    }
    if (going) going = co_await writer.end();
    const bool reusable = writer.settle(going);
    if (going && failing) exchange.truth.outcome = "faulted";
    if (going && !failing) exchange.truth.usage = dialect.usage();
    co_return reusable;
}

net::awaitable<bool> answer_plain(Exchange& exchange, TokenFeed& feed, Dialect& dialect) {
    std::optional<TimePoint> first;
    std::uint64_t produced = 0;
    for (;;) {
        const std::optional<Slice> slice = co_await feed.next();
        if (!slice) break;
        if (!first) first = Clock::now();
        exchange.truth.admitted = feed.admitted_at();
        produced += slice->count;
    }
    AnswerWriter writer(exchange);
    if (exchange.sleeper.cancelled()) co_return writer.settle(false);

    const Ask& ask = dialect.ask();
    if (exchange.fault.is(Fault::Kind::error)) {
        const Refusal failure(500, std::string(k_failure));
        const std::string body = refusal_body(ask.api, failure);
        const bool whole = co_await writer.document(failure.status, body);
        const bool reusable = writer.settle(whole);
        exchange.truth.outcome = "faulted";
        co_return reusable;
    }
    const std::string body = dialect.document(timing_of(exchange.truth, first, Clock::now()));
    const bool whole = co_await writer.document(200, body);
    if (whole) {
        exchange.truth.usage = dialect.usage();
        exchange.truth.output_tokens = generates(ask.api) ? produced : 0;
    }
    co_return writer.settle(whole);
}

}  // namespace

net::awaitable<bool> answer_ask(Exchange& exchange, const Ask& ask) {
    exchange.truth.model = ask.model;
    exchange.truth.stream = ask.stream;
    exchange.truth.prompt_tokens = ask.prompt_tokens;
    if (exchange.fault.is(Fault::Kind::slow_head)) {
        co_await exchange.sleeper.until(Clock::now() + std::chrono::milliseconds(exchange.fault.at));
    }
    const auto feed = exchange.core.feed(ask, exchange.overrides, exchange.sleeper);
    const auto dialect = make_dialect(ask);
    if (ask.stream) co_return co_await answer_stream(exchange, *feed, *dialect);
    co_return co_await answer_plain(exchange, *feed, *dialect);
}

net::awaitable<bool> answer_document(Exchange& exchange, unsigned status, std::string_view body) {
    AnswerWriter writer(exchange);
    const bool whole = co_await writer.document(status, body);
    const bool reusable = writer.settle(whole);
    if (whole && status >= 400) exchange.truth.outcome = "refused";
    co_return reusable;
}

net::awaitable<bool> misbehave_before_head(Exchange& exchange) {
    if (exchange.fault.is(Fault::Kind::garbage)) {
        Wire wire(exchange.socket, exchange.sleeper, Fault{}, Split{}, exchange.over);
        co_await wire.head("\x16\x03\x01\x02 this is not HTTP\r\n\r\n", Framing::close, Wire::Last::yes);
        close_politely(exchange.socket);
    } else if (exchange.fault.is(Fault::Kind::close_before_head)) {
        exchange.over();
        close_politely(exchange.socket);
    } else if (exchange.fault.is(Fault::Kind::reset_before_head)) {
        exchange.over();
        reset(exchange.socket);
    } else {
        co_return false;
    }
    exchange.truth.outcome = "faulted";
    co_return true;
}

}  // namespace sim
