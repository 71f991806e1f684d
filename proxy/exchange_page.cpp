// The engine's metrics page, fetched once for all who ask for it at about the same time.

#include <algorithm>
#include <chrono>
#include <utility>

#include "metrics/telemetry.hpp"
#include "proxy/engine_page/page_board.hpp"
#include "proxy/engine_page/page_request.hpp"
#include "proxy/exchange.hpp"
#include "proxy/http/forward.hpp"

namespace noren::proxy {

using engine_page::Ending;
using engine_page::Outcome;
using metrics::Clock;
using metrics::TimePoint;

namespace {

// A fetch ends in time by itself, unless the worker that runs it is stuck.
constexpr std::chrono::seconds k_patience{1};
constexpr std::size_t k_piece = 64 * 1024;

Reason reason_of(Ending ending) {
    switch (ending) {
        case Ending::tls:
            return Reason::upstream_tls;
        case Ending::broken:
            return Reason::upstream_reset;
        case Ending::late:
            return Reason::upstream_timeout;
        case Ending::malformed:
            return Reason::upstream_protocol;
        case Ending::whole:
        case Ending::unreachable:
        case Ending::too_large:
            break;
    }
    return Reason::internal_error;
}

}  // namespace

bool Exchange::wants_shared_page() const {
    const config::EngineMetrics& page = settings_->config.engine_metrics;
    return page.window.count() > 0 && head_.method == "GET" && path_of(head_.target) == page.path &&
           upload_.body.done() && upload_.upgrade_offer.empty();
}

net::Task<std::optional<bool>> Exchange::share_page() {
    const config::EngineMetrics& limits = settings_->config.engine_metrics;
    const engine_page::PageTerms terms{limits.window, limits.timeout, limits.max_size,
                                       limits.url.empty() ? settings_->tls.upstream : nullptr};
    const engine_page::PageBoard::Share share =
        worker_.services().pages.ask(engine_page::client_request(head_, request_id_), terms, Clock::now());
    if (!share.fetch) co_return std::nullopt;
    if (share.joined) worker_.services().telemetry.page_share();
    meter_.shared_awaited(Clock::now());
    share.fetch->tell(down_.wakeup.waker().notifiable());
    const Due deadline{share.fetch->due() + k_patience, Reason::upstream_timeout,
                       "the engine's metrics page did not come in time"};
    Verdict failure;
    std::optional<Outcome> outcome = share.fetch->outcome();
    const bool was_there = outcome.has_value();
    while (!failure && !outcome) {
        failure = watch_client();
        const Due due = sooner(next_due(), deadline);
        if (!failure) failure = expired(due);
        if (!failure) co_await down_.wakeup.wait(due.at);
        outcome = share.fetch->outcome();
    }
    // It goes to this client alone then, as fast as it takes it.
    if (!failure && outcome->ending == Ending::too_large) co_return std::nullopt;
    if (!failure) failure = failure_of(*outcome);
    if (!failure) failure = co_await send_page(*outcome->page, was_there ? share.fetch->began : net::k_never);
    co_return finish(failure);
}

Verdict Exchange::failure_of(const Outcome& outcome) const {
    if (outcome.ending == Ending::whole) return std::nullopt;
    if (outcome.ours) return no_connection_left();
    if (outcome.ending == Ending::unreachable) return unreachable();
    return make_failure(reason_of(outcome.ending), outcome.detail);
}

/// The body from where it lies, a buffer's worth at a time. kept_since: it was there before it was asked for.
net::Task<Verdict> Exchange::send_page(const engine_page::Page& page, TimePoint kept_since) {
    answer_.keep_alive = http::keeps_alive(head_.fields, head_.minor) && worker_.stopping() == Stop::no;
    answer_.status = page.head.status;
    answer_.client_took = Clock::now();
    meter_.shared_answer(answer_.status, answer_.client_took);
    std::string_view rest = page.body;
    const auto take = [this, &rest] {
        const std::string_view piece = rest.substr(0, k_piece);
        rest.remove_prefix(piece.size());
        bytes_.to_client += piece.size();
        return piece;
    };
    down_.out.send(page_head(page, kept_since), take());
    for (;;) {
        down_.out.flush();
        while (!rest.empty() && !down_.out.broken() &&
               down_.out.waiting() < settings_->config.downstream.buffer)
            down_.out.send(take());
        if (down_.out.broken())
            co_return make_failure(Reason::client_closed, "the client closed the connection");
        if (rest.empty() && down_.out.empty()) co_return std::nullopt;
        if (down_.out.written() != std::exchange(answer_.written_seen, down_.out.written()))
            answer_.client_took = Clock::now();
        meter_.stalled(Clock::now());
        if (Verdict failure = watch_client()) co_return failure;
        const Due due = next_due();
        if (Verdict failure = expired(due)) co_return failure;
        co_await down_.wakeup.wait(due.at);
    }
}

/// RFC 9111 5.1: an answer that was kept tells its age.
std::string Exchange::page_head(const engine_page::Page& page, TimePoint kept_since) {
    const http::Delivery delivery{page.framing, answer_.keep_alive, head_.minor, worker_.date()};
    if (kept_since == net::k_never || page.head.fields.has("age"))
        return http::downstream_head(page.head, delivery, request_id_);
    const auto age = std::chrono::floor<std::chrono::seconds>(Clock::now() - kept_since).count();
    const std::string seconds = std::to_string(age);
    http::ResponseHead head = page.head;
    head.fields.add("Age", seconds);
    return http::downstream_head(head, delivery, request_id_);
}

}  // namespace noren::proxy
