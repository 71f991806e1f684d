// The request's body: held before anybody is asked for a place, then on its way to the engine.

#include <algorithm>
#include <utility>

#include "proxy/exchange.hpp"

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;
using net::deadline_after;
using net::IoStatus;

// --- what both need

Verdict Exchange::verdict_on(relay::RequestBody::Status status) {
    switch (status) {
        case relay::RequestBody::Status::malformed:
            return make_failure(Reason::bad_request, "the request body's chunks are malformed");
        case relay::RequestBody::Status::too_large:
            return make_failure(Reason::body_too_large,
                                "the request body is larger than downstream.max_body");
        case relay::RequestBody::Status::ok:
            break;
    }
    return std::nullopt;
}

/// As far as the body has been seen: before the gate, so that those it refuses have a model too, and whenever
/// more of it has gone on.
void Exchange::tell_what_is_asked() {
    if (!asked_) return;
    const auto& facts = asked_->facts();
    meter_.asked(facts.model.value_or(std::string()), facts.choices.value_or(1), facts.stream.value_or(false),
                 facts.of_each_prompt);
    if (body_.done()) asked_.reset();
}

// --- held

/// Takes the body as far as the hold goes, so that a slow upload holds no permit. A client that waits for
/// "100 Continue" sends nothing before the engine has asked for it.
net::Task<Verdict> Exchange::collect_body() {
    const auto& limits = settings_->config.downstream;
    if (limits.max_body != 0 && framing_.kind == http::BodyKind::length && framing_.length > limits.max_body)
        co_return make_failure(Reason::body_too_large, "the request body is larger than downstream.max_body");
    while (!expects_continue_) {
        if (Verdict failure = hold_body()) co_return failure;
        if (body_.done() || held_.size() >= limits.request_buffer) break;
        if (down_.socket.peer_closed())
            co_return make_failure(Reason::client_closed, "the client closed the connection");
        pace_.took(bytes_.from_client, Clock::now());
        Due due = next_due();
        due = sooner(due, {deadline_after(client_heard_, settings_->config.timeouts.body_idle),
                           Reason::body_timeout, "the request body stopped coming"});
        due = sooner(due, {pace_.due(), Reason::body_timeout, k_too_slow});
        if (Verdict failure = expired(due)) co_return failure;
        co_await down_.wakeup.wait(due.at);
    }
    pace_.rest();
    co_return std::nullopt;
}

/// What the client has sent of its body; empty: nothing for now.
Verdict Exchange::receive(std::string_view& bytes) {
    const bool fresh = down_.in.empty();
    const Downstream::Received received = down_.receive(worker_.scratch());
    if (received.status != IoStatus::ok)
        return make_failure(Reason::client_closed, "the client closed the connection");
    bytes = received.bytes;
    if (fresh && !bytes.empty()) client_heard_ = Clock::now();
    return std::nullopt;
}

/// Moves what has been received into the hold.
Verdict Exchange::hold_body() {
    const std::size_t room = settings_->config.downstream.request_buffer;
    for (int reads = 0; !body_.done() && held_.size() < room; ++reads) {
        if (reads == k_reads_per_turn) {
            down_.wakeup.waker().post();
            break;
        }
        std::size_t received = 0;
        if (framing_.kind == http::BodyKind::length && down_.in.empty()) {
            if (Verdict failure = receive_held(received)) return failure;
        } else {
            std::string_view bytes;
            if (Verdict failure = receive(bytes)) return failure;
            received = bytes.size();
            std::size_t used = 0;
            auto status = relay::RequestBody::Status::ok;
            while (used < bytes.size() && !body_.done() && held_.size() < room &&
                   status == relay::RequestBody::Status::ok) {
                const auto step = body_.next(bytes.substr(used));
                used += step.consumed;
                held_.append(step.wire);
                bytes_.from_client += step.payload.size();
                asked_->feed(step.payload);
                status = step.status;
            }
            down_.used(bytes, used);
            if (Verdict failure = verdict_on(status)) return failure;
        }
        if (received == 0) break;
    }
    return std::nullopt;
}

/// Straight into the hold: what comes is the body, up to its length, and goes on as it is.
Verdict Exchange::receive_held(std::size_t& received) {
    const std::uint64_t left = framing_.length - bytes_.from_client;
    const std::size_t room = settings_->config.downstream.request_buffer - held_.size();
    const std::span<char> place = held_.room(static_cast<std::size_t>(std::min<std::uint64_t>(left, room)));
    const net::IoResult read = down_.socket.read(place);
    if (read.status == IoStatus::would_block) return std::nullopt;
    if (read.status != IoStatus::ok)
        return make_failure(Reason::client_closed, "the client closed the connection");
    client_heard_ = Clock::now();
    received = read.bytes;
    held_.took(received);
    const auto step = body_.next({place.data(), received});
    bytes_.from_client += step.payload.size();
    asked_->feed(step.payload);
    return std::nullopt;
}

// --- on its way

/// Client to engine, as far as the client has sent and the engine takes.
Verdict Exchange::pump_upload() {
    if (answer_whole_ || sent_ || !up_) return std::nullopt;
    if (!up_->flush()) upload_stopped_ = true;  // it may have answered all the same: reading will tell
    client_owes_body() ? pace_.took(bytes_.from_client, Clock::now()) : pace_.rest();
    for (int reads = 0; !upload_stopped_ && up_->empty() && !body_.done(); ++reads) {
        if (reads == k_reads_per_turn) {
            down_.wakeup.waker().post();
            break;
        }
        std::string_view bytes;
        if (Verdict failure = receive(bytes)) return failure;
        if (bytes.empty()) break;
        if (Verdict failure = send_on(bytes)) return failure;
    }
    if (up_->written() != std::exchange(taken_seen_, up_->written())) engine_heard_ = Clock::now();
    if (body_.done() && up_->empty() && !upload_stopped_) {
        sent_ = true;
        const TimePoint now = Clock::now();
        engine_heard_ = now;
        tell_what_is_asked();
        meter_.sent(now);
    }
    return std::nullopt;
}

/// As much of the body as there is, in one write: many small chunks are put together first.
Verdict Exchange::send_on(std::string_view bytes) {
    std::string& together = worker_.together();
    together.clear();
    std::string_view wire;
    std::size_t used = 0;
    auto status = relay::RequestBody::Status::ok;
    while (used < bytes.size() && !body_.done() && status == relay::RequestBody::Status::ok) {
        const auto step = body_.next(bytes.substr(used));
        used += step.consumed;
        status = step.status;
        bytes_.from_client += step.payload.size();
        bytes_.to_upstream += step.payload.size();
        asked_->feed(step.payload);
        const bool alone = used == bytes.size() && together.empty();
        if (!alone) together.append(step.wire);
        wire = alone ? step.wire : std::string_view(together);
    }
    if (!wire.empty()) {
        replayable_ = false;
        held_.clear();
        if (!up_->send(wire)) upload_stopped_ = true;
    }
    down_.used(bytes, used);
    return verdict_on(status);
}

}  // namespace noren::proxy
