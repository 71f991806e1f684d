#include "proxy/engine_page/page_fetcher.hpp"

#include <array>
#include <cerrno>
#include <list>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "proxy/engine_page/page_assembly.hpp"
#include "proxy/net/outbox.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/task.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/upstream/dial.hpp"

namespace noren::proxy::engine_page {

using metrics::Clock;
using net::IoStatus;

namespace {

// Then it is the turn of the streams on the same loop, however much more there is to read.
constexpr int k_reads_per_turn = 4;

Outcome late() {
    return {Ending::late, "the engine's metrics page did not come in time", nullptr};
}

Outcome not_connected(const upstream::Dialled& end) {
    if (end.late) return late();
    if (end.tls.fault != net::TlsFault::none) return {Ending::tls, end.tls.text, nullptr};
    return {Ending::unreachable, "the engine cannot be reached", nullptr, upstream::is_shortage(end.error)};
}

Outcome no_memory() {
    return {Ending::broken, "there was no memory for the engine's metrics page", nullptr, true};
}

}  // namespace

struct PageFetcher::State : std::enable_shared_from_this<State> {
    State(net::Loop& l, upstream::Resolver& r, config::Address e, PageBoard& b, OnEnd ended)
        : loop(l), resolver(r), engine(std::move(e)), board(b), on_end(std::move(ended)) {}

    struct Run {
        Run(net::Loop& loop, std::shared_ptr<PageFetch> f) : fetch(std::move(f)), wakeup(loop) {}
        std::shared_ptr<PageFetch> fetch;
        net::Wakeup wakeup;
        std::optional<net::Task<>> task;
    };
    using Place = std::list<Run>::iterator;

    void start(const std::shared_ptr<PageFetch>& fetch);
    net::Task<> serve(Place run);
    net::Task<Outcome> get(Run& run);
    net::Task<Outcome> ask(Run& run, net::Socket& socket);
    std::optional<Outcome> read_some(net::Socket& socket, PageAssembly& page, bool& drained);

    net::Loop& loop;
    upstream::Resolver& resolver;
    const config::Address engine;
    PageBoard& board;
    const OnEnd on_end;
    std::list<Run> runs;
    std::array<char, 16 * 1024> buffer{};  ///< what is in it is used up before anything else can run
};

void PageFetcher::State::start(const std::shared_ptr<PageFetch>& fetch) {
    try {
        const Place run = runs.emplace(runs.end(), loop, fetch);
        run->task.emplace(serve(run));
        run->task->start();
    } catch (const std::bad_alloc&) {
        board.forget(*fetch);
        fetch->end(no_memory());
    }
}

/// Stays until its page is of no more use, so that no memory is held for nobody.
net::Task<> PageFetcher::State::serve(Place run) {
    Outcome outcome;
    try {
        outcome = co_await get(*run);
    } catch (const std::bad_alloc&) {
        outcome = no_memory();
    }
    const std::shared_ptr<PageFetch> fetch = run->fetch;
    on_end(outcome);
    const bool kept = outcome.page && outcome.page->head.status == 200;
    fetch->end(std::move(outcome));
    const TimePoint until = kept ? fetch->began + fetch->terms.window : fetch->began;
    while (Clock::now() < until)
        co_await run->wakeup.wait(until);
    board.forget(*fetch);
    // Not from within: this is its own frame.
    loop.post([self = shared_from_this(), run] { self->runs.erase(run); });
}

net::Task<Outcome> PageFetcher::State::get(Run& run) {
    const TimePoint due = run.fetch->due();
    upstream::Dialled end =
        co_await upstream::dial(loop, resolver, engine, run.fetch->terms.tls, run.wakeup, due);
    if (!end.socket) co_return not_connected(end);
    Outcome outcome = co_await ask(run, *end.socket);
    co_return outcome;
}

net::Task<Outcome> PageFetcher::State::ask(Run& run, net::Socket& socket) {
    socket.wake(run.wakeup.waker());
    net::Outbox out(socket);
    out.send(run.fetch->request.head);
    PageAssembly page(run.fetch->terms.max_size);
    for (;;) {
        if (Clock::now() >= run.fetch->due()) co_return late();
        out.flush();  // broken or not: it may have answered all the same, reading will tell
        bool drained = false;
        std::optional<Outcome> outcome = read_some(socket, page, drained);
        if (outcome) co_return *std::move(outcome);
        if (!drained) run.wakeup.waker().post();
        co_await run.wakeup.wait(run.fetch->due());
    }
}

std::optional<Outcome> PageFetcher::State::read_some(net::Socket& socket, PageAssembly& page, bool& drained) {
    for (int reads = 0; reads < k_reads_per_turn; ++reads) {
        const net::IoResult read = socket.read(buffer);
        if (read.status == IoStatus::would_block) {
            drained = true;
            return std::nullopt;
        }
        if (const auto tls = socket.tls_failure(); tls.fault != net::TlsFault::none)
            return Outcome{Ending::tls, tls.text, nullptr};
        if (read.status != IoStatus::ok)
            return page.at_close(read.status == IoStatus::closed || read.error == EPIPE);
        auto outcome = page.add(std::string_view(buffer.data(), read.bytes));
        if (outcome) return outcome;
    }
    return std::nullopt;
}

PageFetcher::PageFetcher(net::Loop& loop, upstream::Resolver& resolver, config::Address engine,
                         PageBoard& board, OnEnd on_end)
    : state_(std::make_shared<State>(loop, resolver, std::move(engine), board, std::move(on_end))),
      board_(board) {
    board_.set_fetcher([state = state_](const std::shared_ptr<PageFetch>& fetch) {
        state->loop.post([state, fetch] { state->start(fetch); });
    });
}

PageFetcher::~PageFetcher() {
    board_.set_fetcher({});
    state_->runs.clear();
}

}  // namespace noren::proxy::engine_page
