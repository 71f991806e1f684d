#pragma once
// The one thing a connection's coroutine sleeps on. Sockets that become ready, a granted permit, a finished
// connect and a stop request all call notify(); the coroutine then looks at the state it cares about. So no
// operation ever has to be cancelled to let another one through, and every wait has a deadline.

#include <chrono>
#include <memory>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include "metrics/clock.hpp"

namespace noren::proxy::net {

namespace asio = boost::asio;
using metrics::Clock;
using metrics::TimePoint;

inline constexpr TimePoint k_never = TimePoint::max();

/// A zero duration means no limit.
inline TimePoint deadline_after(TimePoint from, std::chrono::milliseconds duration) {
    return duration.count() == 0 ? k_never : from + duration;
}

class Wakeup;

/// Wakes a coroutine from wherever something happened. A copyable handle that may outlive the sleeper: a
/// handler that was already queued when the connection ended finds nobody and does nothing.
class Waker {
  public:
    /// Resumes the sleeper inside the call, or lets its next wait() return at once. The worker's thread only.
    void notify() const;

    /// notify() through the worker's queue. Any thread.
    void post() const;

  private:
    friend class Wakeup;
    struct State;
    explicit Waker(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

/// The sleeper's side, owned by the connection. The worker's thread only.
class Wakeup {
  public:
    explicit Wakeup(asio::io_context& io);
    ~Wakeup();
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;

    /// Sleeps until a notify() or the deadline, whichever comes first. One wait at a time.
    asio::awaitable<void> wait(TimePoint deadline);

    const Waker& waker() const { return waker_; }

  private:
    Waker waker_;
};

}  // namespace noren::proxy::net
