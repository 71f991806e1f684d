#pragma once
// Whether the workers' loops turn: now and then each is given something to run that does nothing but say so.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "proxy/net/loop.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

struct HeartbeatLimits {
    std::chrono::milliseconds interval{1'000};
    /// Answers that may stay out in a row. A full worker's longest turn is far below a second. 15 leaves room
    /// for a container that gets next to no CPU, and is soon enough for a probe that asks every 10 s.
    unsigned missed = 15;
};

/// One thread (the ops thread). Counts beats, not time: a process that was stopped, or a machine that slept,
/// has missed one beat, however long that took, and no worker is blamed for it. Outlives the workers' loops.
class Heartbeat {
  public:
    /// Runs it on the loop of a worker.
    using Post = std::function<void(std::size_t worker, net::Posting& posting)>;
    using OnChange = std::function<void(std::size_t worker, bool stuck)>;

    Heartbeat(asio::io_context& io, std::size_t workers, Post post, OnChange on_change,
              const HeartbeatLimits& limits = {});

    /// Begins to beat; the workers' loops run or are about to.
    void start();
    /// "worker 1 has not turned for 15 s"; empty: all turn.
    std::string complaint() const;

  private:
    struct Pulse final : net::Posting {
        void run() override { answered = true; }
        void drop() noexcept override { answered = true; }

        std::atomic<bool> answered{true};  ///< set by the worker
        unsigned missed = 0;
    };

    void beat();
    bool is_stuck(const Pulse& pulse) const { return pulse.missed >= limits_.missed; }

    asio::steady_timer timer_;
    std::vector<Pulse> pulses_;  ///< never grows: they are linked into the loops
    const Post post_;
    const OnChange on_change_;
    const HeartbeatLimits limits_;
};

}  // namespace noren::proxy
