#include "proxy/exchange.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>
#include <variant>

#include "metrics/telemetry.hpp"
#include "proxy/admission/retry_after.hpp"
#include "proxy/http/forward.hpp"
#include "proxy/http/upgrade.hpp"
#include "proxy/request_id.hpp"
#include "proxy/upstream/dial.hpp"

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;
using net::deadline_after;
using net::IoStatus;

namespace {

// Sent ahead by the client while its answer runs; past that we do not read.
constexpr std::size_t k_read_ahead = 64 * 1024;

// An engine loads its model for tens of seconds: sooner than so is no use to ask again.
constexpr std::chrono::seconds k_engine_start{5};

// How often to look at what the kernel has left to deliver, once an answer is broken off: it tells nobody.
constexpr std::chrono::milliseconds k_look{20};

/// The engine's doing: what it had sent before is still the client's.
bool is_the_engines(Reason reason) {
    return reason == Reason::upstream_reset || reason == Reason::upstream_timeout ||
           reason == Reason::upstream_protocol || reason == Reason::upstream_tls;
}

}  // namespace

Exchange::Upload::Upload(const http::RequestHead& head, const http::Framing& framing,
                         const config::Downstream& limits, TimePoint at)
    : observer(std::in_place, head.fields.value("content-type")),
      body(framing, limits.max_body),
      expects_continue(head.minor >= 1 && !body.done() && head.fields.lists("expect", "100-continue")),
      upgrade_offer(http::upgrade_offer(head, framing)),
      client_heard(at),
      pace(limits.min_upload_rate, limits.min_upload_window) {}

Exchange::Exchange(Worker& worker, Downstream& down, http::RequestHead& head, const http::Framing& framing,
                   TimePoint at)
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
      upload_(head, framing, settings_->config.downstream, at) {}

net::Task<bool> Exchange::run() {
    if (head_.max_forwards == 0) co_return answer_options();
    if (wants_shared_page()) {
        const std::optional<bool> reusable = co_await share_page();
        if (reusable) co_return *reusable;
    }
    Verdict failure = co_await collect_body();
    if (!failure) failure = co_await admit();
    if (!failure) failure = co_await connect();
    if (!failure) failure = co_await relay();
    if (failure && is_the_engines(failure->reason) && !answer_.tunnelling) co_await deliver_rest();
    co_return finish(failure);
}

// --- a place in the engine

net::Task<Verdict> Exchange::admit() {
    if (!route_.gated) co_return std::nullopt;
    admission::Gate& gate = worker_.services().gate;
    const TimePoint ready = Clock::now();
    meter_.queued(ready, upload_.body.done());
    tell_what_is_asked();
    admission::Ticket ticket(gate, down_.wakeup.waker().notifiable());
    switch (gate.enter(ticket)) {
        case admission::Gate::Entry::full:
            co_return refused(Reason::queue_full, "the engine and the queue are full");
        case admission::Gate::Entry::draining:
            co_return refused(Reason::draining, "this server is shutting down");
        case admission::Gate::Entry::admitted:
        case admission::Gate::Entry::queued:
            break;
    }
    const Due deadline{deadline_after(ready, settings_->config.admission.queue_timeout),
                       Reason::queue_timeout, "no place in the engine became free in time"};
    while (ticket.state() == admission::Ticket::State::waiting) {
        if (Verdict failure = watch_client()) co_return failure;
        const Due due = sooner(next_due(), deadline);
        if (Verdict failure = expired(due); failure && ticket.leave()) {
            if (failure->reason == Reason::queue_timeout) failure = refused(failure->reason, failure->detail);
            co_return failure;
        }
        if (ticket.state() == admission::Ticket::State::waiting) co_await down_.wakeup.wait(due.at);
    }
    if (ticket.state() == admission::Ticket::State::refused)
        co_return refused(Reason::draining, "this server is shutting down");
    engine_.permit = ticket.take();
    engine_.admitted_at = Clock::now();
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

net::Task<Verdict> Exchange::connect() {
    const TimePoint start = Clock::now();
    if (!engine_.retried) meter_.admitted(start);
    if (!route_.gated && !worker_.services().quota.enter_engine(engine_.place))
        co_return no_connection_left();
    if (std::optional<upstream::Lease> idle =
            engine_.retried ? std::nullopt : worker_.pool().take(upload_.replayable && upload_.body.done()))
        engine_.lease.emplace(std::move(*idle));
    if (!engine_.lease) {
        worker_.make_room();
        // Who waited here for long dials by the rules of now: the engine's certificate may be another one
        // too.
        const std::uint64_t rules = worker_.pool().rules();
        upstream::Dial dial(worker_.loop(), worker_.services().resolver, worker_.services().engine,
                            worker_.settings()->tls.upstream, down_.wakeup.waker());
        const Due deadline{deadline_after(start, settings_->config.timeouts.connect),
                           Reason::upstream_connect, "the engine cannot be reached in time"};
        std::optional<int> outcome;
        while (!(outcome = dial.poll())) {
            if (Verdict failure = watch_client()) co_return failure;
            const Due due = sooner(next_due(), deadline);
            Verdict failure = expired(due);
            if (failure && failure->reason != Reason::upstream_connect) co_return failure;
            if (failure) outcome = ETIMEDOUT;
            if (outcome) break;
            const TimePoint until = std::min(due.at, dial.due());
            co_await down_.wakeup.wait(until);
        }
        const TimePoint now = Clock::now();
        worker_.services().telemetry.upstream_connect(*outcome == 0, now - start);
        if (const auto tls = dial.tls_failure(); *outcome != 0 && tls.fault != net::TlsFault::none)
            co_return make_failure(Reason::upstream_tls, tls.text);
        if (upstream::is_shortage(*outcome)) co_return no_connection_left();
        if (upstream::is_refusal(*outcome)) worker_.services().engine_health.doubt();
        if (*outcome != 0) co_return unreachable();
        engine_.lease.emplace(worker_.pool(), dial.take(), false, rules);
    }
    engine_.lease->socket().wake(down_.wakeup.waker());
    engine_.out.emplace(engine_.lease->socket());
    const TimePoint now = Clock::now();
    engine_.heard = now;
    meter_.connected(now, engine_.lease->reused());
    send_head();
    co_return std::nullopt;
}

Failure Exchange::unreachable() const {
    Failure failure = make_failure(Reason::upstream_connect, "the engine cannot be reached");
    // The probe agrees: it is starting or gone, which a client may wait out.
    if (!worker_.services().engine_health.up()) {
        failure.status = 503;
        failure.retry_after = retry_after(k_engine_start);
    }
    return failure;
}

/// Not the engine's doing, and over when others have ended.
Failure Exchange::no_connection_left() const {
    Failure failure =
        make_failure(Reason::internal_error,
                     "no file descriptor or no memory is left for a connection to the engine", 503);
    failure.retry_after = retry_after();
    return failure;
}

/// The head and what is held of the body leave in one write.
void Exchange::send_head() {
    answer_.scanner = http::HeadScanner(k_answer_head);
    engine_.out->lend(http::upstream_head(head_, framing_, request_id_, upload_.upgrade_offer),
                      upload_.held.bytes());
    bytes_.to_upstream = bytes_.from_client;
    tell_what_is_asked();
}

// --- what can come between

/// Reads what the client sends meanwhile, which is also how its leaving shows.
Verdict Exchange::watch_client() {
    const bool upload_reads =
        engine_.out && engine_.out->empty() && !upload_.sent && !upload_.stopped && !answer_.whole;
    while (!upload_reads && down_.in.size() < k_read_ahead) {
        const net::IoResult read = down_.socket.read(worker_.scratch());
        if (read.status == IoStatus::would_block) return std::nullopt;
        if (read.status != IoStatus::ok)
            return make_failure(Reason::client_closed, "the client closed the connection");
        upload_.client_heard = Clock::now();
        down_.in.append(worker_.scratch().data(), read.bytes);
    }
    if (down_.socket.peer_closed())
        return make_failure(Reason::client_closed, "the client closed the connection");
    return std::nullopt;
}

/// The engine is connected and would take more of the request's body.
bool Exchange::client_owes_body() const {
    const bool continue_awaited =
        upload_.expects_continue && bytes_.from_client == 0 && !upload_.continue_sent;
    return !upload_.sent && !upload_.stopped && engine_.out->empty() && !continue_awaited;
}

/// The one place that says which limit runs in which situation.
Exchange::Due Exchange::next_due() const {
    const auto& timeouts = settings_->config.timeouts;
    Due next;
    const auto consider = [&next](TimePoint at, Reason reason, std::string_view detail) {
        if (at < next.at) next = {at, reason, detail};
    };
    consider(deadline_after(began_, timeouts.total), Reason::total_timeout, "timeouts.total is over");
    if (!down_.out.empty())
        consider(deadline_after(answer_.client_took, settings_->config.downstream.stall_timeout),
                 Reason::stall_timeout, "the client stopped reading");
    // Not connected yet: the phases add limits of their own. Held up by the client: the engine's silence is
    // our doing.
    if (!engine_.out || answer_.stalled) return next;
    if (answer_.body) {
        consider(deadline_after(engine_.heard, timeouts.upstream_idle), Reason::upstream_timeout,
                 "the engine fell silent in its answer");
    } else if (client_owes_body()) {
        consider(deadline_after(upload_.client_heard, timeouts.body_idle), Reason::body_timeout,
                 "the request body stopped coming");
        consider(upload_.pace.due(), Reason::body_timeout, k_too_slow);
    } else {
        consider(deadline_after(engine_.heard, timeouts.first_byte), Reason::upstream_timeout,
                 "the engine did not answer in time");
    }
    return next;
}

/// What it waits for may be in the kernel already, on either side.
Verdict Exchange::expired(const Due& due) {
    if (worker_.stopping() == Stop::now)
        return make_failure(Reason::draining, "this server is shutting down");
    const net::Patience::Left left = patience_.left(due.at, Clock::now());
    if (left == net::Patience::Left::none) return make_failure(due.reason, due.detail);
    if (left == net::Patience::Left::look) {
        down_.socket.try_anyway();
        if (engine_.lease) engine_.lease->socket().try_anyway();
    }
    return std::nullopt;
}

// --- the end

/// The connection first, the permit behind it.
void Exchange::leave_engine() {
    if (engine_.out)
        bytes_.to_upstream -= std::min<std::uint64_t>(bytes_.to_upstream, engine_.out->waiting());
    engine_.out.reset();
    engine_.lease.reset();
    engine_.place.leave();
    engine_.permit.release();
}

/// RFC 9110 7.6.2: an OPTIONS that goes no further is ours to answer. A body with it is not read.
bool Exchange::answer_options() {
    const bool reusable =
        upload_.body.done() && http::keeps_alive(head_.fields, head_.minor) && worker_.stopping() == Stop::no;
    down_.out.send(options_response({worker_.date(), request_id_, reusable, head_.minor}));
    meter_.finish({metrics::Outcome::ok, 200, {}}, bytes_, Clock::now());
    return reusable;
}

/// The engine broke its answer off. What it had sent until then goes to the client, who reads more slowly.
/// Where a reset is to follow, which would throw away what the kernel has left, until that has gone as well;
/// nobody tells when.
net::Task<> Exchange::deliver_rest() {
    leave_engine();
    meter_.upstream_broken();
    if (!down_.out.empty()) meter_.stalled(Clock::now());
    patience_.renew();
    const auto in_kernel = [this] {
        return answer_.close_ends_body ? down_.socket.unacknowledged() : std::size_t{0};
    };
    std::size_t kept = in_kernel();
    while (!down_.out.empty() || kept > 0) {
        if (!down_.out.flush() || watch_client()) co_return;
        const bool taken = down_.out.written() != std::exchange(answer_.written_seen, down_.out.written());
        const std::size_t before = std::exchange(kept, in_kernel());
        const TimePoint now = Clock::now();
        if (taken || kept < before) {
            answer_.client_took = now;
            patience_.renew();
        }
        if (down_.out.empty() && kept == 0) co_return;
        const Due due = sooner(
            next_due(), {deadline_after(answer_.client_took, settings_->config.downstream.stall_timeout),
                         Reason::stall_timeout, "the client stopped reading"});
        if (expired(due)) co_return;
        const TimePoint until = kept > 0 ? std::min(due.at, now + k_look) : due.at;
        co_await down_.wakeup.wait(until);
    }
}

/// A client that waits for the close to know that its answer is whole must see that this one is no clean end.
void Exchange::break_off() {
    answer_.close_ends_body ? down_.socket.reset() : down_.socket.close();
}

bool Exchange::finish(const Verdict& failure) {
    const TimePoint now = Clock::now();
    const bool head_sent = answer_.status != 0;
    bool reusable = answer_.keep_alive;
    const bool caught_up = head_sent && down_.out.empty();
    metrics::Ending ending{metrics::Outcome::ok, answer_.status, {}, {}, caught_up};
    if (failure) {
        ending = {outcome_of(failure->reason), answer_.status, word_of(failure->reason), failure->detail,
                  caught_up};
        reusable = false;
        // What nobody has taken was not sent.
        bytes_.to_client -= std::min<std::uint64_t>(bytes_.to_client, down_.out.waiting());
        // From here on the engine works for nobody, and closing tells it so. Before the permit goes back: the
        // next in line may be on another worker, and must not reach the engine ahead of the close.
        if (answer_.tunnelling && engine_.lease) engine_.lease->socket().reset();
        leave_engine();
        if (head_sent) {
            break_off();
        } else if (failure->reason == Reason::client_closed) {
            down_.socket.close();
        } else {
            ending.status = failure->status;
            reusable = upload_.body.done() && failure->status != 400 && failure->reason != Reason::draining &&
                       http::keeps_alive(head_.fields, head_.minor) && worker_.stopping() == Stop::no;
            const std::string answer =
                to_response(*failure, route_.dialect,
                            {worker_.date(), request_id_, reusable, head_.minor, head_.method != "HEAD"});
            bytes_.to_client += body_size(answer);
            down_.out.send(answer);
        }
    }
    meter_.finish(ending, bytes_, now);
    return reusable;
}

Exchange::~Exchange() {
    if (meter_.finished()) return;
    break_off();
    leave_engine();
    try {
        meter_.finish({metrics::Outcome::internal_error, answer_.status, word_of(Reason::internal_error)},
                      bytes_, Clock::now());
    } catch (const std::bad_alloc&) {
        // Most likely why it was not finished in the first place. What it holds goes back all the same.
    }
}

}  // namespace noren::proxy
