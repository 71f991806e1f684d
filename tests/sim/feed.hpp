#pragma once
// Where the tokens of one request come from, and when: a place in the GPU's batch, or a pace of its own.

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "tests/sim/ask.hpp"
#include "tests/sim/dialects/dialect.hpp"
#include "tests/sim/pace.hpp"
#include "tests/sim/scheduler.hpp"
#include "tests/sim/sleeper.hpp"

namespace sim {

/// Destroying a feed takes the request out of the engine at once.
class TokenFeed {
  public:
    virtual ~TokenFeed() = default;

    /// The next slice, when it is due; nullopt = all were given, or the sleeper was cancelled.
    virtual net::awaitable<std::optional<Slice>> next() = 0;

    /// When the request left the engine's own queue; nullopt = it has not yet.
    virtual std::optional<TimePoint> admitted_at() const = 0;
};

/// A lone stream: see Pace. Choices of one request go in lock-step.
class PacedFeed final : public TokenFeed {
  public:
    /// `running` counts the lone streams that exist.
    PacedFeed(const Ask& ask, const Pace& pace, std::uint64_t seed, Sleeper& sleeper, std::size_t& running);
    ~PacedFeed() override { --running_; }
    PacedFeed(const PacedFeed&) = delete;
    PacedFeed& operator=(const PacedFeed&) = delete;

    net::awaitable<std::optional<Slice>> next() override;
    std::optional<TimePoint> admitted_at() const override { return start_; }

  private:
    std::uint32_t choices_;
    std::uint32_t tokens_;
    std::uint32_t per_event_;
    GapSource gaps_;
    TimePoint start_;
    TimePoint due_;
    Sleeper& sleeper_;
    std::size_t& running_;
    std::uint32_t choice_ = 0;
    std::uint32_t first_ = 0;
};

class BatchFeed;

/// Runs the scheduler in real time. Outlives every feed; all on the io_context's one thread.
class BatchDriver {
  public:
    BatchDriver(net::io_context& io, const GpuModel& model) : scheduler_(model), timer_(io) {}

    bool fits(const Ask& ask) const;
    std::unique_ptr<TokenFeed> join(const Ask& ask, Sleeper& sleeper);
    const Scheduler& scheduler() const { return scheduler_; }

    /// No more steps; lets io.run() return.
    void stop();

  private:
    friend class BatchFeed;
    struct Place {
        BatchFeed* feed;
        std::uint32_t choice;
    };

    void leave(SequenceId id);
    void arm();
    void finish_step();

    Scheduler scheduler_;
    net::steady_timer timer_;
    bool armed_ = false;
    bool stopped_ = false;
    std::unordered_map<SequenceId, Place> places_;
};

/// A request in the batch; every choice is a sequence of its own.
class BatchFeed final : public TokenFeed {
  public:
    BatchFeed(BatchDriver& driver, Sleeper& sleeper) : driver_(driver), sleeper_(sleeper) {}
    ~BatchFeed() override;
    BatchFeed(const BatchFeed&) = delete;
    BatchFeed& operator=(const BatchFeed&) = delete;

    net::awaitable<std::optional<Slice>> next() override;
    std::optional<TimePoint> admitted_at() const override { return admitted_at_; }

  private:
    friend class BatchDriver;
    void deliver(std::uint32_t choice, const Output& output);

    BatchDriver& driver_;
    Sleeper& sleeper_;
    std::vector<SequenceId> sequences_;  // still in the engine
    std::deque<Slice> ready_;
    std::optional<TimePoint> admitted_at_;
};

}  // namespace sim
