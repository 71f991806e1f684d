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
    if (!upload_.observer) return;
    const auto& facts = upload_.observer->facts();
    meter_.asked(facts.model.value_or(std::string()), facts.choices.value_or(1), facts.stream.value_or(false),
                 facts.of_each_prompt);
    if (upload_.body.done()) upload_.observer.reset();
}

// --- held

/// Takes the body as far as the hold goes, so that a slow upload holds no permit. A client that waits for
/// "100 Continue" sends nothing before the engine has asked for it.
net::Task<Verdict> Exchange::collect_body() {
    const auto& limits = settings_->config.downstream;
    if (limits.max_body != 0 && framing_.kind == http::BodyKind::length && framing_.length > limits.max_body)
        co_return make_failure(Reason::body_too_large, "the request body is larger than downstream.max_body");
    while (!upload_.expects_continue) {
        if (Verdict failure = hold_body()) co_return failure;
        if (upload_.body.done() || upload_.held.size() >= limits.request_buffer) break;
        if (down_.socket.peer_closed())
            co_return make_failure(Reason::client_closed, "the client closed the connection");
        upload_.pace.took(bytes_.from_client, Clock::now());
        Due due = next_due();
        due = sooner(due, {deadline_after(upload_.client_heard, settings_->config.timeouts.body_idle),
                           Reason::body_timeout, "the request body stopped coming"});
        due = sooner(due, {upload_.pace.due(), Reason::body_timeout, k_too_slow});
        if (Verdict failure = expired(due)) co_return failure;
        co_await down_.wakeup.wait(due.at);
    }
    upload_.pace.rest();
    co_return std::nullopt;
}

/// What the client has sent of its body; empty: nothing for now.
Verdict Exchange::receive(std::string_view& bytes) {
    const bool fresh = down_.in.empty();
    const Downstream::Received received = down_.receive(worker_.scratch());
    if (received.status != IoStatus::ok)
        return make_failure(Reason::client_closed, "the client closed the connection");
    bytes = received.bytes;
    if (fresh && !bytes.empty()) upload_.client_heard = Clock::now();
    return std::nullopt;
}

/// Moves what has been received into the hold.
Verdict Exchange::hold_body() {
    const std::size_t room = settings_->config.downstream.request_buffer;
    for (int reads = 0; !upload_.body.done() && upload_.held.size() < room; ++reads) {
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
            while (used < bytes.size() && !upload_.body.done() && upload_.held.size() < room &&
                   status == relay::RequestBody::Status::ok) {
                const auto step = upload_.body.next(bytes.substr(used));
                used += step.consumed;
                upload_.held.append(step.wire);
                bytes_.from_client += step.payload.size();
                upload_.observer->feed(step.payload);
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
    const std::size_t room = settings_->config.downstream.request_buffer - upload_.held.size();
    const std::span<char> place =
        upload_.held.room(static_cast<std::size_t>(std::min<std::uint64_t>(left, room)));
    const net::IoResult read = down_.socket.read(place);
    if (read.status == IoStatus::would_block) return std::nullopt;
    if (read.status != IoStatus::ok)
        return make_failure(Reason::client_closed, "the client closed the connection");
    upload_.client_heard = Clock::now();
    received = read.bytes;
    upload_.held.took(received);
    const auto step = upload_.body.next({place.data(), received});
    bytes_.from_client += step.payload.size();
    upload_.observer->feed(step.payload);
    return std::nullopt;
}

// --- on its way

/// Client to engine, as far as the client has sent and the engine takes.
Verdict Exchange::pump_upload() {
    if (answer_.whole || upload_.sent || !engine_.out) return std::nullopt;
    if (!engine_.out->flush())
        upload_.stopped = true;  // it may have answered all the same: reading will tell
    client_owes_body() ? upload_.pace.took(bytes_.from_client, Clock::now()) : upload_.pace.rest();
    for (int reads = 0; !upload_.stopped && engine_.out->empty() && !upload_.body.done(); ++reads) {
        if (reads == k_reads_per_turn) {
            down_.wakeup.waker().post();
            break;
        }
        std::string_view bytes;
        if (Verdict failure = receive(bytes)) return failure;
        if (bytes.empty()) break;
        if (Verdict failure = send_on(bytes)) return failure;
    }
    if (engine_.out->written() != std::exchange(engine_.taken_seen, engine_.out->written()))
        engine_.heard = Clock::now();
    if (upload_.body.done() && engine_.out->empty() && !upload_.stopped) {
        upload_.sent = true;
        const TimePoint now = Clock::now();
        engine_.heard = now;
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
    while (used < bytes.size() && !upload_.body.done() && status == relay::RequestBody::Status::ok) {
        const auto step = upload_.body.next(bytes.substr(used));
        used += step.consumed;
        status = step.status;
        bytes_.from_client += step.payload.size();
        bytes_.to_upstream += step.payload.size();
        upload_.observer->feed(step.payload);
        const bool alone = used == bytes.size() && together.empty();
        if (!alone) together.append(step.wire);
        wire = alone ? step.wire : std::string_view(together);
    }
    if (!wire.empty()) {
        upload_.replayable = false;
        upload_.held.clear();
        if (!engine_.out->send(wire)) upload_.stopped = true;
    }
    down_.used(bytes, used);
    return verdict_on(status);
}

}  // namespace noren::proxy
