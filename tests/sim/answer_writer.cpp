#include "tests/sim/answer_writer.hpp"

namespace sim {

AnswerWriter::AnswerWriter(Exchange& exchange)
    : exchange_(exchange),
      wire_(exchange.socket, exchange.sleeper, exchange.fault,
            Split{exchange.overrides.split_bytes, exchange.overrides.split_pause}) {}

net::awaitable<bool> AnswerWriter::head(ResponseHead head) {
    std::string padding;
    if (exchange_.fault.is(Fault::Kind::huge_head)) {
        padding = "x-sim-padding: " + std::string(exchange_.fault.at, 'a') + "\r\n";
    }
    head.request_id = exchange_.truth.id;
    head.extra = padding;
    if (exchange_.overrides.close || (exchange_.http10 && head.framing == Framing::chunked)) {
        head.framing = Framing::close;
        exchange_.keep_alive = false;
    }
    head.close = !exchange_.keep_alive;
    const std::string text = to_string(head);
    if (!co_await wire_.head(text, head.framing)) co_return false;
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
    co_return co_await wire_.end();
}

net::awaitable<bool> AnswerWriter::document(unsigned status, std::string_view body) {
    const ResponseHead what{.status = status, .length = body.size()};
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
