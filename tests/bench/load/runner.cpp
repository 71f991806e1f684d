#include "tests/bench/load/runner.hpp"

#include <algorithm>
#include <csignal>
#include <deque>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/bench/load/client.hpp"

namespace load {
namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

class Run {
  public:
    Run(const Options& options, const OnProgress& on_progress)
        : options_(options),
          on_progress_(on_progress),
          source_(options),
          sim_text_(options.api, options.headers),
          ticker_(io_),
          idle_(io_, TimePoint::max()),
          next_arrival_(io_),
          interrupts_(io_, SIGINT) {
        for (const std::string& url : options.urls)
            targets_.push_back(resolve(url));
        outcome_.gaps.assign(options.stages.size(), std::vector<Histogram>(targets_.size()));
    }

    Outcome finish() {
        auto all = everything();
        asio::co_spawn(io_, std::move(all), [](const std::exception_ptr& error) {
            if (error) std::rethrow_exception(error);
        });
        tick();
        interrupts_.async_wait([this](const boost::system::error_code& error, int) {
            if (error) return;
            outcome_.interrupted = true;
            interrupts_.clear();  // the next one kills
            next_arrival_.cancel();
        });
        io_.run();
        return std::move(outcome_);
    }

  private:
    bool over(TimePoint until) const {
        return outcome_.interrupted || Clock::now() >= until ||
               (options_.requests != 0 && source_.issued() >= options_.requests);
    }

    static TimePoint end_of(const Stage& stage) {
        return stage.duration.count() > 0 ? Clock::now() + stage.duration : TimePoint::max();
    }

    asio::awaitable<void> everything() {
        if (options_.rate > 0) {
            co_await arrivals();
        } else {
            for (; stage_ < options_.stages.size() && !outcome_.interrupted; ++stage_)
                co_await closed_loop(options_.stages[stage_]);
        }
        ended_ = true;
        ticker_.cancel();
        interrupts_.cancel();
    }

    asio::awaitable<void> closed_loop(const Stage& stage) {
        const TimePoint until = end_of(stage);
        for (std::uint32_t i = 0; i < stage.connections; ++i) {
            auto client = worker(until);
            begin(std::move(client));
        }
        co_await all_done();
    }

    void begin(asio::awaitable<void> work) {
        ++open_;
        asio::co_spawn(io_, std::move(work), [this](const std::exception_ptr& error) {
            if (--open_ == 0) idle_.cancel();
            if (error) std::rethrow_exception(error);
        });
    }

    asio::awaitable<void> all_done() {
        while (open_ > 0)
            co_await idle_.async_wait(tuple_awaitable);
    }

    std::deque<Client> clients() {
        std::deque<Client> all;
        for (const Target& target : targets_)
            all.emplace_back(io_, options_, sim_text_, target);
        return all;
    }

    asio::awaitable<void> worker(TimePoint until) {
        std::deque<Client> connections = clients();
        asio::steady_timer pause(io_);
        while (!over(until)) {
            const Request request = source_.next();
            const bool welcome = co_await everywhere(connections, request);
            if (welcome || options_.refused_pause.count() == 0) continue;
            pause.expires_after(options_.refused_pause);
            co_await pause.async_wait(tuple_awaitable);
        }
    }

    asio::awaitable<void> arrival(Request request) {
        std::deque<Client> connections = clients();
        co_await everywhere(connections, request);
    }

    /// Sends one request to every url. False if one refused it or could not be reached.
    asio::awaitable<bool> everywhere(std::deque<Client>& connections, const Request& request) {
        bool welcome = true;
        const std::size_t count = connections.size(), first = source_.issued() % count;
        std::optional<std::uint64_t> text;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t target = (first + i) % count;
            Result result = co_await connections[target].run(request, outcome_.gaps[stage_][target]);
            if (options_.expect_same && result.ok() && text.value_or(result.text_hash) != result.text_hash) {
                result.error = "differs";
                result.detail = "not the text that the other url gave for the same request";
            }
            if (result.ok()) text = result.text_hash;
            welcome = welcome && !result.refused() && !result.error.starts_with("connect");
            record(std::move(result), target);
        }
        co_return welcome;
    }

    void record(Result result, std::size_t target) {
        result.target = target;
        result.stage = stage_;
        ++progress_.done;
        progress_.refused += result.refused();
        progress_.failed += result.failed();
        progress_.tokens += result.tokens;
        outcome_.results.push_back(std::move(result));
    }

    asio::awaitable<void> arrivals() {
        Arrivals process(options_.rate, options_.seed);
        const TimePoint until = end_of(options_.stages.front());
        TimePoint due = Clock::now();
        while (!over(until)) {
            due += process.next_gap();
            next_arrival_.expires_at(std::min(due, until));
            co_await next_arrival_.async_wait(tuple_awaitable);
            if (over(until)) break;
            outcome_.lateness.add(std::chrono::duration<double>(Clock::now() - due).count());
            if (open_ >= options_.max_open) {
                ++outcome_.missed;
                continue;
            }
            auto one = arrival(source_.next());
            begin(std::move(one));
        }
        co_await all_done();
    }

    void tick() {
        ticker_.expires_after(std::chrono::milliseconds(500));
        ticker_.async_wait([this](const boost::system::error_code& error) {
            // What has run out already cannot be cancelled any more, and would keep the loop going for ever.
            if (error || ended_) return;
            progress_.stage = stage_;
            progress_.open = open_;
            progress_.stopping = outcome_.interrupted;
            progress_.seconds = std::chrono::duration<double>(Clock::now() - began_).count();
            on_progress_(progress_);
            tick();
        });
    }

    const Options& options_;
    const OnProgress& on_progress_;
    asio::io_context io_{1};
    RequestSource source_;
    SimText sim_text_;
    std::vector<Target> targets_;
    asio::steady_timer ticker_, idle_, next_arrival_;
    asio::signal_set interrupts_;
    Outcome outcome_;
    Progress progress_;
    TimePoint began_ = Clock::now();
    std::uint64_t open_ = 0;
    std::size_t stage_ = 0;
    bool ended_ = false;
};

}  // namespace

Outcome run(const Options& options, const OnProgress& on_progress) {
    Run whole(options, on_progress);
    return whole.finish();
}

}  // namespace load
