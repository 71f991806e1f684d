#pragma once
// The upstream connections of one worker: idle ones kept for the next request, busy ones out on lease.

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "proxy/net/socket.hpp"

namespace noren::proxy::upstream {

using metrics::Clock;
using metrics::Duration;
using metrics::TimePoint;

class Pool;

/// One upstream connection in use. Closed on destruction unless it was given back, so that whatever goes
/// wrong in an exchange, a connection in an unknown state is never used again.
class Lease {
  public:
    /// rules: Pool::rules() of when it was dialled.
    Lease(Pool& pool, net::Socket socket, bool reused, std::uint64_t rules);
    ~Lease();
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;

    net::Socket& socket() { return socket_; }
    const net::Socket& socket() const { return socket_; }
    /// It carried a request before: it may have been closed by the engine just now.
    bool reused() const { return reused_; }
    /// Only after a whole request sent, a whole answer read and no byte beyond it (RFC 9112 9.3).
    void give_back();

  private:
    Pool* pool_;
    net::Socket socket_;
    bool reused_;
    std::uint64_t rules_;
};

/// The worker's thread only, but for the two counts. Keeps as many idle connections as have been busy at
/// once: a smaller pool would use up local ports under load.
class Pool {
  public:
    Pool(net::Loop& loop, Duration idle_timeout);

    /// The most recently used idle connection that is still sound. can_retry: the request can be sent once
    /// more should it turn out to be dead after all, so that the kernel is not asked first.
    std::optional<Lease> take(bool can_retry);

    /// Idle connections older than this are closed, now and from now on. 0 = keep none.
    void set_idle_timeout(Duration timeout);
    /// All of them; connections that are busy may be kept after this.
    void close_idle();
    /// Other rules for who passes for the engine are in force: no connection made by those before is used for
    /// another request, neither one that is idle now nor one that is busy.
    void change_rules();
    /// Which rules are in force: a number that means nothing else.
    std::uint64_t rules() const { return rules_; }

    std::uint64_t active() const { return active_.load(std::memory_order_relaxed); }
    std::uint64_t idle() const { return idle_count_.load(std::memory_order_relaxed); }

  private:
    friend class Lease;
    struct Idle {
        net::Socket socket;
        TimePoint since;
    };
    void keep(net::Socket socket, std::uint64_t rules);
    void reap();
    void reap_later();
    void publish();

    net::Timer timer_;
    Duration idle_timeout_;
    std::vector<Idle> idle_;  ///< oldest first
    bool reaping_ = false;
    std::uint64_t rules_ = 0;
    std::atomic<std::uint64_t> active_{0};
    std::atomic<std::uint64_t> idle_count_{0};
};

}  // namespace noren::proxy::upstream
