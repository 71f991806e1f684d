// Both directions at once: the body to the engine, the answer to the client.

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <variant>

#include "metrics/prefetch.hpp"
#include "proxy/admission/retry_after.hpp"
#include "proxy/exchange.hpp"
#include "proxy/http/forward.hpp"
#include "proxy/http/upgrade.hpp"
#include "proxy/load_report.hpp"

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;
using net::IoStatus;

namespace {

// 100, 102 and 103 come a few times at most; an engine that sends them without end is broken.
constexpr int k_max_interims = 16;

bool is_idempotent(std::string_view method) {  // RFC 9110 9.2.2
    constexpr std::array<std::string_view, 5> k_methods = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
    return std::find(k_methods.begin(), k_methods.end(), method) != k_methods.end();
}

}  // namespace

net::Task<Verdict> Exchange::relay() {
    for (;;) {
        if (Verdict failure = pump_upload()) co_return failure;
        if (Verdict failure = pump_answer()) co_return failure;
        if (answer_.tunnelling) {
            Verdict end = co_await tunnel();
            co_return end;
        }
        if (engine_.lease == std::nullopt &&
            !answer_.whole) {  // a dead reused connection: once more on a new one
            if (Verdict failure = co_await connect()) co_return failure;
            continue;
        }
        if (answer_.whole && down_.out.empty()) co_return std::nullopt;
        if (Verdict failure = watch_client()) co_return failure;
        const Due due = next_due();
        if (Verdict failure = expired(due)) co_return failure;
        co_await down_.wakeup.wait(due.at);
    }
}

/// What a token event goes through, on its way from one socket to the other.
void Exchange::prefetch() const noexcept {
    metrics::prefetch(this, sizeof(*this));
    metrics::prefetch(&down_, sizeof(down_));
    down_.socket.prefetch();
    meter_.prefetch();
}

/// Engine to client, as far as the engine has sent and the client's buffer has room.
Verdict Exchange::pump_answer() {
    prefetch();
    down_.out.flush();
    for (int reads = 0;;) {
        if (down_.out.broken())
            return make_failure(Reason::client_closed, "the client closed the connection");
        if (answer_.whole || answer_.tunnelling || !engine_.lease) break;
        const bool full = down_.out.waiting() >= settings_->config.downstream.buffer;
        if (full) break;
        if (++reads > k_reads_per_turn) {
            down_.wakeup.waker().post();
            break;
        }
        bool moved = false;
        if (Verdict failure = read_answer(moved)) return failure;
        if (!moved) break;
    }
    const TimePoint now = Clock::now();
    if (down_.out.written() != std::exchange(answer_.written_seen, down_.out.written()) || down_.out.empty())
        answer_.client_took = now;
    const bool stalled =
        !down_.out.empty() && (answer_.whole || down_.out.waiting() >= settings_->config.downstream.buffer);
    if (stalled != std::exchange(answer_.stalled, stalled))
        stalled ? meter_.stalled(now) : meter_.resumed(now);
    return std::nullopt;
}

/// One read from the engine and what follows from it.
Verdict Exchange::read_answer(bool& moved) {
    const net::IoResult read = engine_.lease->socket().read(worker_.scratch());
    switch (read.status) {
        case IoStatus::would_block:
            return std::nullopt;
        case IoStatus::closed:
            return engine_hung_up(true);
        case IoStatus::broken:
            return engine_hung_up(read.error == EPIPE);
        case IoStatus::ok:
            break;
    }
    const TimePoint at = Clock::now();
    moved = true;
    // Byte by byte a head could take for ever.
    if (answer_.body || !std::exchange(engine_.spoke, true)) engine_.heard = at;
    const std::string_view bytes(worker_.scratch().data(), read.bytes);
    return answer_.body ? take_body_bytes({}, bytes, at) : take_head_bytes(bytes, at);
}

/// A head that came whole in one read is used where it is.
Verdict Exchange::take_head_bytes(std::string_view bytes, TimePoint at) {
    std::string begun = std::exchange(answer_.head, {});
    if (!begun.empty()) bytes = begun.append(bytes);
    for (;;) {
        const auto found = answer_.scanner.scan(bytes);
        if (std::holds_alternative<std::monostate>(found)) {
            const bool is_begun = bytes.data() == begun.data();
            answer_.head = is_begun ? std::move(begun) : std::string(bytes);
            return std::nullopt;
        }
        if (std::holds_alternative<http::HeadError>(found))
            return make_failure(Reason::upstream_protocol, "the engine's answer is not valid HTTP");
        const std::size_t size = std::get<std::size_t>(found);
        const auto parsed = http::parse_response_head(bytes.substr(0, size));
        const auto* head = std::get_if<http::ResponseHead>(&parsed);
        if (!head) return make_failure(Reason::upstream_protocol, std::get<http::HeadError>(parsed).detail);
        bytes.remove_prefix(size);
        answer_.scanner = http::HeadScanner(k_answer_head);
        if (head->status == 101) return switch_protocols(*head, bytes, at);
        if (head->status >= 200) return begin_answer(*head, bytes, at);
        if (Verdict failure = take_interim(*head)) return failure;
    }
}

/// RFC 9110 15.2: any number of 1xx may come before the answer, none of them to an HTTP/1.0 client. A 100
/// goes to those who asked.
Verdict Exchange::take_interim(const http::ResponseHead& head) {
    if (++answer_.interims > k_max_interims)
        return make_failure(Reason::upstream_protocol, "the engine sent too many 1xx");
    engine_.heard = Clock::now();
    const bool wanted = head_.minor >= 1 && (head.status != 100 || upload_.expects_continue);
    if (wanted) down_.out.send(http::interim_head(head));
    if (wanted && head.status == 100) {  // now it is the client's turn
        upload_.continue_sent = true;
        upload_.client_heard = engine_.heard;
    }
    return std::nullopt;
}

/// rest: came behind the 101, of the new protocol already.
Verdict Exchange::switch_protocols(const http::ResponseHead& head, std::string_view rest, TimePoint at) {
    const std::string_view protocol = http::accepted_upgrade(upload_.upgrade_offer, head);
    if (protocol.empty())
        return make_failure(Reason::upstream_protocol, "the engine switched protocols unasked");
    answer_.status = head.status;
    answer_.tunnelling = answer_.close_ends_body = true;
    meter_.switched(protocol, at);
    bytes_.from_upstream += rest.size();
    bytes_.to_client += rest.size();
    down_.out.send(http::switching_head(head, protocol, request_id_), rest);
    return std::nullopt;
}

/// For an answer that has none of the engine's; empty: none is wanted.
std::string Exchange::load_report_for(const http::ResponseHead& head) const {
    const std::string& wanted = settings_->config.engine_metrics.orca;
    if (wanted == "off" || has_load_report(head.fields)) return {};
    const auto asked = load_format_asked(head_.fields);
    if (!asked && wanted == "asked") return {};
    const admission::Gate& gate = worker_.services().gate;
    return load_report({gate.running(), gate.waiting(), gate.limits().max_concurrency},
                       asked.value_or(LoadFormat::text));
}

Verdict Exchange::begin_answer(const http::ResponseHead& head, std::string_view rest, TimePoint at) {
    const auto framed = http::response_framing(head, head_.method);
    const auto* framing = std::get_if<http::Framing>(&framed);
    if (!framing) return make_failure(Reason::upstream_protocol, std::get<http::HeadError>(framed).detail);
    engine_.keeps_alive =
        http::keeps_alive(head.fields, head.minor) && framing->kind != http::BodyKind::until_close;

    // An error before the whole request is there means the engine wants no more of it (RFC 9112 9.5).
    if (!upload_.sent && head.status >= 400) upload_.stopped = true;
    const bool dechunk = framing->kind == http::BodyKind::chunked && head_.minor == 0;
    http::Delivery delivery{dechunk ? http::Framing{http::BodyKind::until_close, 0} : *framing, true,
                            head_.minor, worker_.date()};
    answer_.close_ends_body = delivery.framing.kind == http::BodyKind::until_close;
    answer_.keep_alive = http::keeps_alive(head_.fields, head_.minor) && !answer_.close_ends_body &&
                         upload_.body.done() && !upload_.stopped && worker_.stopping() == Stop::no;
    delivery.keep_alive = answer_.keep_alive;
    const std::string report = load_report_for(head);
    delivery.load_report = report;
    meter_.answer_head(head.status, head.fields.value("content-type"), http::content_coding(head.fields), at);
    answer_.body.emplace(*framing, dechunk);
    engine_.heard = at;
    answer_.status = head.status;
    if (engine_.out->empty()) upload_.held.clear();  // nothing is sent a second time now
    const std::string text = http::downstream_head(head, delivery, request_id_);
    head_.fields = {};  // asked for the last time, and a stream may last for minutes
    return take_body_bytes(text, rest, at);
}

/// The token path: write what was read, then look at it. head: goes out in front, with the first bytes.
Verdict Exchange::take_body_bytes(std::string_view head, std::string_view bytes, TimePoint at) {
    const relay::AnswerBody::Passed passed = answer_.body->pass(bytes);
    if (!head.empty() || !passed.wire.empty()) {
        head.empty() ? down_.out.send(passed.wire) : down_.out.send(head, passed.wire);
    }
    answer_.body->show(bytes, *this);
    meter_.mark(at);
    engine_.surplus = passed.consumed < bytes.size();
    if (passed.status == relay::AnswerBody::Status::malformed)
        return make_failure(Reason::upstream_protocol, "the engine's chunks are malformed");
    if (passed.status == relay::AnswerBody::Status::done) answer_over(at);
    return std::nullopt;
}

void Exchange::payload(std::string_view piece) noexcept {
    bytes_.from_upstream += piece.size();
    bytes_.to_client += piece.size();
    meter_.body(piece);
}

/// orderly: by FIN, or by a reset that followed one.
Verdict Exchange::engine_hung_up(bool orderly) {
    if (answer_.body && orderly && answer_.body->at_close() == relay::AnswerBody::Status::done) {
        engine_.keeps_alive = false;
        answer_over(Clock::now());
        return std::nullopt;
    }
    if (may_retry(orderly)) {
        engine_.retried = true;
        engine_.out.reset();
        engine_.lease.reset();
        upload_.sent = upload_.stopped = false;
        return std::nullopt;
    }
    // In TLS 1.3 a client certificate is refused only after the handshake (RFC 8446 4.4.2.4).
    if (const auto tls = engine_.lease->socket().tls_failure(); tls.fault != net::TlsFault::none)
        return make_failure(Reason::upstream_tls, tls.text);
    if (answer_.body) return make_failure(Reason::upstream_reset, "the engine broke its answer off");
    return make_failure(Reason::upstream_reset, "the engine closed the connection without an answer");
}

/// Only a connection that has served before can have been closed by the engine's keep-alive timer just as the
/// request was on its way. The engine then ends it in order and has never had the whole request. An end
/// behind one that it did have (a worker that died of it), or a reset, may hit a request at work, and what is
/// not idempotent is then not sent twice (RFC 9110 9.2.2).
bool Exchange::may_retry(bool orderly) const {
    if (!engine_.lease->reused() || engine_.retried || engine_.spoke || !upload_.replayable) return false;
    const bool had_all =
        !engine_.out->broken() && engine_.out->empty() && engine_.lease->socket().unacknowledged() == 0;
    return (orderly && !had_all) || is_idempotent(head_.method);
}

/// The engine is done with this request: the next one may have its place, whether this client has read all or
/// not.
void Exchange::answer_over(TimePoint at) {
    answer_.whole = true;
    if (engine_.permit) worker_.services().retry_after.observe(at - engine_.admitted_at);
    if (engine_.keeps_alive && upload_.sent && !engine_.surplus && worker_.fits_one_more_to_engine())
        engine_.lease->give_back();
    leave_engine();
    meter_.upstream_done(at);
}

}  // namespace noren::proxy
