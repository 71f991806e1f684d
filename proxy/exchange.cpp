#include "proxy/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <variant>

#include "metrics/telemetry.hpp"
#include "proxy/admission/retry_after.hpp"
#include "proxy/http/forward.hpp"
#include "proxy/request_id.hpp"
#include "proxy/upstream/dial.hpp"

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;
using net::IoStatus;

namespace {

// Of an answer's head; larger ones are refused as unparsable.
constexpr http::HeadLimits k_answer_head{64 * 1024, 256};
// 100, 102 and 103 come a few times at most; an engine that sends them without end is broken.
constexpr int k_max_interims = 16;
// Sent ahead by the client while its answer runs; past that we do not read, and look for its leaving from
// time to time.
constexpr std::size_t k_read_ahead = 64 * 1024;
constexpr std::chrono::milliseconds k_blind_look{20};

// An engine loads its model for tens of seconds: sooner than so is no use to ask again.
constexpr std::chrono::seconds k_engine_start{5};

/// The moment a duration after `from`; a zero duration means no limit.
TimePoint limit(TimePoint from, config::Duration duration) {
    return duration.count() == 0 ? net::k_never : from + duration;
}

template <typename Due>
Due sooner(const Due& a, const Due& b) {
    return b.at < a.at ? b : a;
}

bool is_idempotent(std::string_view method) {  // RFC 9110 9.2.2
    constexpr std::array<std::string_view, 5> k_methods = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
    return std::find(k_methods.begin(), k_methods.end(), method) != k_methods.end();
}

}  // namespace

Exchange::Exchange(Worker& worker, Downstream& down, const http::RequestHead& head,
                   const http::Framing& framing, TimePoint at)
    : worker_(worker),
      down_(down),
      head_(head),
      framing_(framing),
      settings_(worker.settings()),
      route_(settings_->routes.find(head.method, head.target)),
      request_id_(request_id_of(head.fields, worker.random())),
      began_(at),
      meter_(worker.services().telemetry, route_.endpoint, route_.gated, request_id_, head.method,
             path_of(head.target), at),
      asked_(head.fields.value("content-type")),
      body_(framing, settings_->config.downstream.max_body),
      client_heard_(at) {
    expects_continue_ = head.minor >= 1 && !body_.done() && head.fields.lists("expect", "100-continue");
}

asio::awaitable<bool> Exchange::run() {
    if (head_.max_forwards == 0) co_return answer_options();
    Verdict failure = co_await collect_body();
    if (!failure) failure = co_await admit();
    if (!failure) failure = co_await connect();
    if (!failure) failure = co_await relay();
    co_return finish(failure);
}

// --- the request, as far as it is held before anybody is asked for a place

/// Takes the body as far as the hold goes, so that a slow upload holds no permit. A client that waits for
/// "100 Continue" sends nothing before the engine has asked for it.
asio::awaitable<Exchange::Verdict> Exchange::collect_body() {
    const auto& limits = settings_->config.downstream;
    if (limits.max_body != 0 && framing_.kind == http::BodyKind::length && framing_.length > limits.max_body)
        co_return make_failure(Reason::body_too_large, "the request body is larger than downstream.max_body");
    while (!expects_continue_) {
        if (Verdict failure = hold_body()) co_return failure;
        if (body_.done() || held_.size() >= limits.request_buffer) break;
        if (Verdict failure = watch_client()) co_return failure;
        if (!down_.in.empty()) continue;
        Due due = next_due();
        due = sooner(due, {limit(client_heard_, settings_->config.timeouts.body_idle), Reason::body_timeout,
                           "the request body stopped coming"});
        if (Verdict failure = expired(due)) co_return failure;
        co_await sleep(due);
    }
    co_return std::nullopt;
}

/// Moves received bytes into the hold.
Exchange::Verdict Exchange::hold_body() {
    std::size_t used = 0;
    Verdict failure;
    while (!body_.done() && held_.size() < settings_->config.downstream.request_buffer) {
        const auto step = body_.next(std::string_view(down_.in).substr(used));
        used += step.consumed;
        held_.append(step.wire);
        bytes_.from_client += step.payload.size();
        asked_.feed(step.payload);
        if (step.status == relay::RequestBody::Status::malformed)
            failure = make_failure(Reason::bad_request, "the request body's chunks are malformed");
        if (step.status == relay::RequestBody::Status::too_large)
            failure =
                make_failure(Reason::body_too_large, "the request body is larger than downstream.max_body");
        if (failure || step.consumed == 0) break;
    }
    down_.in.erase(0, used);
    return failure;
}

// --- a place in the engine

asio::awaitable<Exchange::Verdict> Exchange::admit() {
    if (!route_.gated) co_return std::nullopt;
    admission::Gate& gate = worker_.services().gate;
    const TimePoint ready = Clock::now();
    meter_.queued(ready, body_.done());
    admission::Ticket ticket(gate, [waker = down_.wakeup.waker()] { waker.post(); });
    switch (gate.enter(ticket)) {
        case admission::Gate::Entry::full:
            co_return refused(Reason::queue_full, "the engine and the queue are full");
        case admission::Gate::Entry::draining:
            co_return refused(Reason::draining, "this server is shutting down");
        case admission::Gate::Entry::admitted:
        case admission::Gate::Entry::queued:
            break;
    }
    const Due deadline{limit(ready, settings_->config.admission.queue_timeout), Reason::queue_timeout,
                       "no place in the engine became free in time"};
    while (ticket.state() == admission::Ticket::State::waiting) {
        if (Verdict failure = watch_client()) co_return failure;
        const Due due = sooner(next_due(), deadline);
        if (Verdict failure = expired(due); failure && ticket.leave()) {
            if (failure->reason == Reason::queue_timeout) failure = refused(failure->reason, failure->detail);
            co_return failure;
        }
        if (ticket.state() == admission::Ticket::State::waiting) co_await sleep(due);
    }
    if (ticket.state() == admission::Ticket::State::refused)
        co_return refused(Reason::draining, "this server is shutting down");
    permit_ = ticket.take();
    admitted_at_ = Clock::now();
    co_return std::nullopt;
}

Failure Exchange::refused(Reason reason, std::string_view detail) {
    const int status = reason == Reason::draining ? 503 : settings_->config.admission.full_status;
    Failure failure = make_failure(reason, detail, status);
    failure.retry_after = retry_after();
    return failure;
}

std::uint32_t Exchange::retry_after(std::chrono::duration<double> not_before) const {
    const admission::Gate& gate = worker_.services().gate;
    const double jitter = std::uniform_real_distribution<double>(0.0, 1.0)(worker_.random());
    return worker_.services().retry_after.seconds(gate.waiting(), gate.limits().max_concurrency, jitter,
                                                  not_before);
}

// --- a connection to the engine

asio::awaitable<Exchange::Verdict> Exchange::connect() {
    const TimePoint start = Clock::now();
    if (!retried_) meter_.admitted(start);
    if (std::optional<upstream::Lease> idle = retried_ ? std::nullopt : worker_.pool().take())
        lease_.emplace(std::move(*idle));
    if (!lease_) {
        upstream::Dial dial(worker_.io(), worker_.services().engine, down_.wakeup.waker());
        const Due deadline{limit(start, settings_->config.timeouts.connect), Reason::upstream_connect,
                           "the engine cannot be reached in time"};
        std::optional<int> outcome;
        while (!(outcome = dial.poll())) {
            if (Verdict failure = watch_client()) co_return failure;
            const Due due = sooner(next_due(), deadline);
            Verdict failure = expired(due);
            if (failure && failure->reason != Reason::upstream_connect) co_return failure;
            if (failure) outcome = ETIMEDOUT;
            if (outcome) break;
            co_await sleep(due);
        }
        const TimePoint now = Clock::now();
        worker_.services().telemetry.upstream_connect(*outcome == 0, now - start);
        if (*outcome != 0) {
            Failure failure = make_failure(Reason::upstream_connect, "the engine cannot be reached");
            // Nobody listens, and the probe agrees: it is starting or gone, which a client may wait out.
            if ((*outcome == ECONNREFUSED || *outcome == ENOENT) && !worker_.services().engine_up.load()) {
                failure.status = 503;
                failure.retry_after = retry_after(k_engine_start);
            }
            co_return failure;
        }
        lease_.emplace(worker_.pool(), dial.take(), false);
    }
    lease_->socket().wake(down_.wakeup.waker());
    up_.emplace(lease_->socket());
    const TimePoint now = Clock::now();
    engine_heard_ = now;
    meter_.connected(now, lease_->reused());
    send_head();
    co_return std::nullopt;
}

/// The head and what is held of the body leave in one write.
void Exchange::send_head() {
    scanner_.emplace(k_answer_head);
    up_->send(http::upstream_head(head_, framing_, request_id_), held_);
    bytes_.to_upstream = held_.size();
    const auto& facts = asked_.facts();
    meter_.asked(facts.model.value_or(std::string()), facts.choices.value_or(1),
                 facts.stream.value_or(false));
}

// --- both directions at once

asio::awaitable<Exchange::Verdict> Exchange::relay() {
    for (;;) {
        if (Verdict failure = pump_upload()) co_return failure;
        if (Verdict failure = pump_answer()) co_return failure;
        if (lease_ == std::nullopt && !answer_whole_) {  // a dead reused connection: once more on a new one
            if (Verdict failure = co_await connect()) co_return failure;
            continue;
        }
        if (answer_whole_ && down_.out.empty()) co_return std::nullopt;
        if (Verdict failure = watch_client()) co_return failure;
        const Due due = next_due();
        if (Verdict failure = expired(due)) co_return failure;
        co_await sleep(due);
    }
}

/// Client to engine, as far as the client has sent and the engine takes.
Exchange::Verdict Exchange::pump_upload() {
    if (answer_whole_ || sent_ || !up_) return std::nullopt;
    if (!up_->flush()) upload_stopped_ = true;  // it may have answered all the same: reading will tell
    while (!upload_stopped_ && up_->empty() && !body_.done()) {
        if (down_.in.empty()) {
            if (Verdict failure = watch_client()) return failure;
            if (down_.in.empty()) return std::nullopt;
        }
        const auto step = body_.next(down_.in);
        bytes_.from_client += step.payload.size();
        asked_.feed(step.payload);
        if (!step.wire.empty()) {
            replayable_ = false;
            held_ = {};
            if (!up_->send(step.wire)) upload_stopped_ = true;
            bytes_.to_upstream += step.payload.size();
        }
        down_.in.erase(0, step.consumed);
        if (step.status == relay::RequestBody::Status::malformed)
            return make_failure(Reason::bad_request, "the request body's chunks are malformed");
        if (step.status == relay::RequestBody::Status::too_large)
            return make_failure(Reason::body_too_large,
                                "the request body is larger than downstream.max_body");
    }
    if (up_->written() != std::exchange(taken_seen_, up_->written())) engine_heard_ = Clock::now();
    if (body_.done() && up_->empty() && !upload_stopped_) {
        sent_ = true;
        const TimePoint now = Clock::now();
        engine_heard_ = now;
        const auto& facts = asked_.facts();
        meter_.asked(facts.model.value_or(std::string()), facts.choices.value_or(1),
                     facts.stream.value_or(false));
        meter_.sent(now);
    }
    return std::nullopt;
}

/// Engine to client, as far as the engine has sent and the client's buffer has room.
Exchange::Verdict Exchange::pump_answer() {
    down_.out.flush();
    for (;;) {
        if (down_.out.broken())
            return make_failure(Reason::client_closed, "the client closed the connection");
        if (answer_whole_ || !lease_) break;
        const bool full = down_.out.waiting() >= settings_->config.downstream.buffer;
        if (full) break;
        bool moved = false;
        if (Verdict failure = read_answer(moved)) return failure;
        if (!moved) break;
    }
    const TimePoint now = Clock::now();
    if (down_.out.written() != std::exchange(written_seen_, down_.out.written()) || down_.out.empty())
        client_took_ = now;
    const bool stalled =
        !down_.out.empty() && (answer_whole_ || down_.out.waiting() >= settings_->config.downstream.buffer);
    if (stalled != std::exchange(stalled_, stalled)) stalled ? meter_.stalled(now) : meter_.resumed(now);
    return std::nullopt;
}

/// One read from the engine and what follows from it.
Exchange::Verdict Exchange::read_answer(bool& moved) {
    const net::IoResult read = lease_->socket().read(worker_.scratch());
    const TimePoint at = Clock::now();
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
    moved = true;
    engine_spoke_ = true;
    engine_heard_ = at;
    const std::string_view bytes(worker_.scratch().data(), read.bytes);
    return answer_ ? take_body_bytes({}, bytes, at) : take_head_bytes(bytes, at);
}

Exchange::Verdict Exchange::take_head_bytes(std::string_view bytes, TimePoint at) {
    answer_head_.append(bytes);
    while (!answer_) {
        const auto found = scanner_->scan(answer_head_);
        if (std::holds_alternative<std::monostate>(found)) return std::nullopt;
        if (std::holds_alternative<http::HeadError>(found))
            return make_failure(Reason::upstream_protocol, "the engine's answer is not valid HTTP");
        const std::size_t size = std::get<std::size_t>(found);
        const std::string text = answer_head_.substr(0, size);
        answer_head_.erase(0, size);
        scanner_.emplace(k_answer_head);
        const auto parsed = http::parse_response_head(text);
        const auto* head = std::get_if<http::ResponseHead>(&parsed);
        if (!head) return make_failure(Reason::upstream_protocol, std::get<http::HeadError>(parsed).detail);
        if (head->status < 200) {
            if (Verdict failure = take_interim(*head)) return failure;
            continue;
        }
        const std::string rest = std::exchange(answer_head_, {});
        return begin_answer(*head, rest, at);
    }
    return std::nullopt;
}

/// RFC 9110 15.2: any number of 1xx may come before the answer, none of them to an HTTP/1.0 client. A 100
/// goes to those who asked; 101 to nobody, since no Upgrade is ever passed on.
Exchange::Verdict Exchange::take_interim(const http::ResponseHead& head) {
    if (head.status == 101)
        return make_failure(Reason::upstream_protocol, "the engine switched protocols unasked");
    if (++interims_ > k_max_interims)
        return make_failure(Reason::upstream_protocol, "the engine sent too many 1xx");
    const bool wanted = head_.minor >= 1 && (head.status != 100 || expects_continue_);
    if (wanted) down_.out.send(http::interim_head(head));
    return std::nullopt;
}

Exchange::Verdict Exchange::begin_answer(const http::ResponseHead& head, std::string_view rest,
                                         TimePoint at) {
    const auto framed = http::response_framing(head, head_.method);
    const auto* framing = std::get_if<http::Framing>(&framed);
    if (!framing) return make_failure(Reason::upstream_protocol, std::get<http::HeadError>(framed).detail);
    engine_keeps_alive_ =
        http::keeps_alive(head.fields, head.minor) && framing->kind != http::BodyKind::until_close;

    // An error before the whole request is there means the engine wants no more of it (RFC 9112 9.5).
    if (!sent_ && head.status >= 400) upload_stopped_ = true;
    const bool dechunk = framing->kind == http::BodyKind::chunked && head_.minor == 0;
    http::Delivery delivery{dechunk ? http::Framing{http::BodyKind::until_close, 0} : *framing, true,
                            head_.minor, worker_.date()};
    close_ends_body_ = delivery.framing.kind == http::BodyKind::until_close;
    keep_alive_ = http::keeps_alive(head_.fields, head_.minor) && !close_ends_body_ && body_.done() &&
                  !upload_stopped_ && worker_.stopping() == Stop::no;
    delivery.keep_alive = keep_alive_;
    meter_.answer_head(head.status, head.fields.value("content-type"), head.fields.value("content-encoding"),
                       at);
    answer_.emplace(*framing, dechunk);
    status_ = head.status;
    return take_body_bytes(http::downstream_head(head, delivery, request_id_), rest, at);
}

/// The token path: write what was read, then look at it. head: goes out in front, with the first bytes.
Exchange::Verdict Exchange::take_body_bytes(std::string_view head, std::string_view bytes, TimePoint at) {
    const relay::AnswerBody::Passed passed = answer_->pass(bytes);
    if (!head.empty() || !passed.wire.empty()) {
        head.empty() ? down_.out.send(passed.wire) : down_.out.send(head, passed.wire);
    }
    answer_->show(bytes, *this);
    meter_.mark(at);
    surplus_ = passed.consumed < bytes.size();
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
Exchange::Verdict Exchange::engine_hung_up(bool orderly) {
    if (answer_ && orderly && answer_->at_close() == relay::AnswerBody::Status::done) {
        engine_keeps_alive_ = false;
        answer_over(Clock::now());
        return std::nullopt;
    }
    if (may_retry(orderly)) {
        retried_ = true;
        lease_.reset();
        up_.reset();
        sent_ = upload_stopped_ = false;
        return std::nullopt;
    }
    if (answer_) return make_failure(Reason::upstream_reset, "the engine broke its answer off");
    return make_failure(Reason::upstream_reset, "the engine closed the connection without an answer");
}

/// Only a connection that has served before can have been closed by the engine's keep-alive timer just as the
/// request was on its way. A FIN says so: the engine had nothing unread when it closed. A reset may hit a
/// request at work, and what is not idempotent is then not sent twice (RFC 9110 9.2.2).
bool Exchange::may_retry(bool orderly) const {
    return lease_->reused() && !retried_ && !engine_spoke_ && replayable_ &&
           (orderly || is_idempotent(head_.method));
}

/// The engine is done with this request: the next one may have its place, whether this client has read all or
/// not.
void Exchange::answer_over(TimePoint at) {
    answer_whole_ = true;
    if (permit_) worker_.services().retry_after.observe(at - admitted_at_);
    permit_.release();
    meter_.upstream_done(at);
    if (engine_keeps_alive_ && sent_ && !surplus_) {
        lease_->give_back();
    }
    up_.reset();
    lease_.reset();
}

// --- what can come between

/// Reads what the client sends meanwhile, which is also how its leaving shows.
Exchange::Verdict Exchange::watch_client() {
    while (down_.in.size() < k_read_ahead) {
        const net::IoResult read = down_.socket.read(worker_.scratch());
        if (read.status == IoStatus::would_block) return std::nullopt;
        if (read.status != IoStatus::ok)
            return make_failure(Reason::client_closed, "the client closed the connection");
        client_heard_ = Clock::now();
        down_.in.append(worker_.scratch().data(), read.bytes);
    }
    if (down_.socket.peer_closed())
        return make_failure(Reason::client_closed, "the client closed the connection");
    return std::nullopt;
}

/// The one place that says which limit runs in which situation.
Exchange::Due Exchange::next_due() const {
    const auto& timeouts = settings_->config.timeouts;
    Due next;
    const auto consider = [&next](TimePoint at, Reason reason, std::string_view detail) {
        if (at < next.at) next = {at, reason, detail};
    };
    consider(limit(began_, timeouts.total), Reason::total_timeout, "timeouts.total is over");
    if (!down_.out.empty())
        consider(limit(client_took_, settings_->config.downstream.stall_timeout), Reason::stall_timeout,
                 "the client stopped reading");
    // Not connected yet: the phases add limits of their own. Held up by the client: the engine's silence is
    // our doing.
    if (!up_ || stalled_) return next;
    const bool continue_awaited = expects_continue_ && bytes_.from_client == 0 && interims_ == 0;
    const bool client_owes_body = !sent_ && !upload_stopped_ && up_->empty() && !continue_awaited;
    if (answer_) {
        consider(limit(engine_heard_, timeouts.upstream_idle), Reason::upstream_timeout,
                 "the engine fell silent in its answer");
    } else if (client_owes_body) {
        consider(limit(client_heard_, timeouts.body_idle), Reason::body_timeout,
                 "the request body stopped coming");
    } else {
        consider(limit(engine_heard_, timeouts.first_byte), Reason::upstream_timeout,
                 "the engine did not answer in time");
    }
    return next;
}

Exchange::Verdict Exchange::expired(const Due& due) const {
    if (worker_.stopping() == Stop::now)
        return make_failure(Reason::draining, "this server is shutting down");
    if (Clock::now() >= due.at) return make_failure(due.reason, due.detail);
    return std::nullopt;
}

asio::awaitable<void> Exchange::sleep(const Due& due) {
    const bool blind = down_.in.size() >= k_read_ahead;
    co_await down_.wakeup.wait(blind ? std::min(due.at, Clock::now() + k_blind_look) : due.at);
}

// --- the end

/// RFC 9110 7.6.2: an OPTIONS that goes no further is ours to answer. A body with it is not read.
bool Exchange::answer_options() {
    const bool reusable =
        body_.done() && http::keeps_alive(head_.fields, head_.minor) && worker_.stopping() == Stop::no;
    down_.out.send(options_response({worker_.date(), request_id_, reusable, head_.minor}));
    meter_.finish({metrics::Outcome::ok, 200, {}}, bytes_, Clock::now());
    return reusable;
}

bool Exchange::finish(const Verdict& failure) {
    const TimePoint now = Clock::now();
    const bool head_sent = answer_.has_value();
    bool reusable = keep_alive_;
    metrics::Ending ending{metrics::Outcome::ok, status_, {}};
    if (failure) {
        // From here on the engine works for nobody: closing tells it so.
        permit_.release();
        lease_.reset();
        ending = {outcome_of(failure->reason), status_, word_of(failure->reason)};
        reusable = false;
        if (failure->reason == Reason::client_closed) {
            down_.socket.close();
        } else if (head_sent) {
            // Never a clean end for a broken answer. A client that waits for the close must see it was no
            // clean one.
            close_ends_body_ ? down_.socket.reset() : down_.socket.close();
        } else {
            ending.status = failure->status;
            reusable = body_.done() && failure->status != 400 && failure->reason != Reason::draining &&
                       http::keeps_alive(head_.fields, head_.minor) && worker_.stopping() == Stop::no;
            down_.out.send(
                to_response(*failure, route_.dialect,
                            {worker_.date(), request_id_, reusable, head_.minor, head_.method != "HEAD"}));
        }
    }
    meter_.finish(ending, bytes_, now);
    return reusable;
}

}  // namespace noren::proxy
