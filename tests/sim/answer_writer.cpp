#include "tests/sim/answer_writer.hpp"

#include "tests/sim/json_text.hpp"

namespace sim {

namespace {

constexpr std::string_view k_digest = "x-sim-body-fnv1a64";

std::string digest_line(std::uint64_t fnv) {
    return concat(k_digest, ": ", hex(fnv), "\r\n");
}

}  // namespace

AnswerWriter::AnswerWriter(Exchange& exchange)
    : exchange_(exchange),
      wire_(exchange.socket, exchange.sleeper, exchange.fault,
            Split{exchange.overrides.split_bytes, exchange.overrides.split_pause}, exchange.over,
            exchange.overrides.stamp ? Stamps::yes : Stamps::no) {}

net::awaitable<bool> AnswerWriter::head(ResponseHead head) {
    std::string extra(head.extra);
    if (exchange_.fault.is(Fault::Kind::huge_head)) {
        extra += concat("x-sim-padding: ", std::string(exchange_.fault.at, 'a'), "\r\n");
    }
    head.request_id = exchange_.truth.id;
    if (exchange_.overrides.close || (exchange_.http10 && head.framing == Framing::chunked)) {
        head.framing = Framing::close;
        exchange_.keep_alive = false;
    }
    head.close = !exchange_.keep_alive;
    digest_follows_ = exchange_.overrides.digest && head.framing == Framing::chunked;
    if (digest_follows_) extra += concat("trailer: ", k_digest, "\r\n");
    head.extra = extra;
    const std::string text = to_string(head);
    const bool bare = head.framing == Framing::length && head.length == 0;
    if (!co_await wire_.head(text, head.framing, bare ? Wire::Last::yes : Wire::Last::no)) co_return false;
    exchange_.truth.status = head.status;
    exchange_.truth.head_sent = wire_.stamped();
    co_return true;
}

net::awaitable<bool> AnswerWriter::event(const Event& event) {
    if (!co_await wire_.body(event.bytes)) co_return false;
    Truth& truth = exchange_.truth;
    truth.events.push_back({wire_.stamped(), event.tokens});
    truth.output_tokens += event.tokens;
    if (event.tokens > 0) ++truth.token_events;
    co_return true;
}

net::awaitable<bool> AnswerWriter::events(const Events& events) {
    for (const Event& one : events) {
        if (!co_await event(one)) co_return false;
    }
    co_return true;
}

net::awaitable<bool> AnswerWriter::end() {
    const std::string trailers = digest_follows_ ? digest_line(wire_.body_fnv()) : "";
    co_return co_await wire_.end(trailers);
}

net::awaitable<bool> AnswerWriter::document(unsigned status, std::string_view body) {
    const std::string digest = exchange_.overrides.digest ? digest_line(fnv1a(body)) : "";
    const ResponseHead what{.status = status, .length = body.size(), .extra = digest};
    if (!co_await head(what)) co_return false;
    if (!co_await wire_.body(body)) co_return false;
    exchange_.truth.events.push_back({wire_.stamped(), 0});
    co_return co_await wire_.end();
}

net::awaitable<void> AnswerWriter::break_chunk() {
    co_await wire_.break_chunk();
}

bool AnswerWriter::settle(bool whole) {
    Truth& truth = exchange_.truth;
    truth.answer_bytes = wire_.body_bytes();
    truth.answer_fnv = wire_.body_fnv();
    if (whole) {
        truth.outcome = "complete";
    } else if (wire_.struck()) {
        truth.outcome = "faulted";
    } else {
        truth.outcome = "cancelled";
        if (!truth.cancel_seen) truth.cancel_seen = Clock::now();  // a failed write was the first sign
    }
    return whole && exchange_.keep_alive && !exchange_.fault.is(Fault::Kind::close_after);
}

}  // namespace sim
