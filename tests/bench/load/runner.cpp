#include "tests/bench/load/runner.hpp"

#include <random>
#include <sstream>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/bench/load/client.hpp"

namespace load {
namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

std::string words(std::mt19937_64& random, std::uint32_t count) {
    std::string text;
    for (std::uint32_t i = 0; i < count; ++i)
        text += (i ? " w" : "w") + std::to_string(random() % 1000);
    return text;
}

class Run {
  public:
    Run(const Options& options, const std::function<void(const Progress&)>& tick)
        : options_(options), tick_(tick), random_(options.seed), ticker_(io_) {
        for (const std::string& url : options.urls)
            targets_.push_back(resolve(url));
    }

    Outcome finish() {
        auto all = options_.rate > 0 ? arrivals() : stages();
        asio::co_spawn(io_, std::move(all), asio::detached);
        report_progress();
        io_.run();
        return std::move(outcome_);
    }

  private:
    bool over(TimePoint until) const {
        return Clock::now() >= until || (options_.requests != 0 && issued_ >= options_.requests);
    }

    Request next_request() {
        const auto within = [&](const Range& range) {
            return std::uniform_int_distribution<std::uint32_t>(range.least, range.most)(random_);
        };
        Ask ask;
        ask.model = options_.model;
        ask.stream = options_.stream;
        ask.max_tokens = within(options_.max_tokens);
        ask.prompt = options_.prompts.empty() ? words(random_, within(options_.prompt_words))
                                              : options_.prompts[issued_ % options_.prompts.size()];
        Request request;
        std::ostringstream id;
        id << "load-" << options_.seed << "-" << issued_++;
        request.id = id.str();
        request.path = path_of(options_.api, ask);
        request.body = body_of(options_.api, ask);
        if (std::uniform_real_distribution<>(0, 1)(random_) < options_.leave)
            request.leave_after = std::chrono::microseconds(std::uniform_int_distribution<std::int64_t>(
                0, options_.leave_within.count() * 1000)(random_));
        return request;
    }

    asio::awaitable<void> one(Client& client, const Request& request, std::size_t target) {
        Result result = co_await client.run(request);
        result.target = target;
        result.stage = stage_;
        ++done_;
        failed_ += !result.ok() && !result.left;
        outcome_.results.push_back(std::move(result));
    }

    asio::awaitable<void> worker(TimePoint until) {
        std::vector<Client> clients;
        for (const Target& target : targets_)
            clients.emplace_back(io_, options_, target);
        while (!over(until)) {
            const Request request = next_request();
            for (std::size_t i = 0; i < clients.size(); ++i)
                co_await one(clients[i], request, i);
        }
        --open_;
    }

    asio::awaitable<void> stages() {
        asio::steady_timer timer(io_);
        for (const Stage& stage : options_.stages) {
            const TimePoint until =
                stage.duration.count() > 0 ? Clock::now() + stage.duration : TimePoint::max();
            for (std::uint32_t i = 0; i < stage.connections; ++i) {
                ++open_;
                asio::co_spawn(io_, worker(until), asio::detached);
            }
            while (open_ > 0) {
                timer.expires_after(std::chrono::milliseconds(5));
                co_await timer.async_wait(tuple_awaitable);
            }
            ++stage_;
        }
        ticker_.cancel();
        finished_ = true;
    }

    asio::awaitable<void> arrival(Request request) {
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            Client client(io_, options_, targets_[i]);
            co_await one(client, request, i);
        }
        --open_;
    }

    asio::awaitable<void> arrivals() {
        const auto duration =
            options_.stages.empty() ? std::chrono::milliseconds(0) : options_.stages.front().duration;
        const TimePoint until = duration.count() > 0 ? Clock::now() + duration : TimePoint::max();
        std::exponential_distribution<> gap(options_.rate);
        asio::steady_timer timer(io_);
        TimePoint next = Clock::now();
        while (!over(until)) {
            next += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(gap(random_)));
            timer.expires_at(next);
            co_await timer.async_wait(tuple_awaitable);
            if (open_ >= options_.max_open) {
                ++outcome_.missed;
                continue;
            }
            ++open_;
            Request request = next_request();
            auto running = arrival(std::move(request));
            asio::co_spawn(io_, std::move(running), asio::detached);
        }
        while (open_ > 0) {
            timer.expires_after(std::chrono::milliseconds(5));
            co_await timer.async_wait(tuple_awaitable);
        }
        ticker_.cancel();
        finished_ = true;
    }

    void report_progress() {
        ticker_.expires_after(std::chrono::milliseconds(500));
        ticker_.async_wait([this](const boost::system::error_code& error) {
            if (error || finished_) return;
            tick_({stage_, done_, failed_, std::chrono::duration<double>(Clock::now() - began_).count()});
            report_progress();
        });
    }

    const Options& options_;
    const std::function<void(const Progress&)>& tick_;
    asio::io_context io_{1};
    std::mt19937_64 random_;
    asio::steady_timer ticker_;
    std::vector<Target> targets_;
    Outcome outcome_;
    TimePoint began_ = Clock::now();
    std::uint64_t issued_ = 0, done_ = 0, failed_ = 0;
    std::uint32_t open_ = 0;
    std::size_t stage_ = 0;
    bool finished_ = false;
};

}  // namespace

Outcome run(const Options& options, const std::function<void(const Progress&)>& tick) {
    Run whole(options, tick);
    return whole.finish();
}

}  // namespace load
