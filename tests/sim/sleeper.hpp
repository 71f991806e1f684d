#pragma once
// The waiting of one exchange, which one call ends for good.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "tests/sim/scheduler.hpp"

namespace sim {

namespace net = boost::asio;
inline constexpr auto tuple_awaitable = net::as_tuple(net::use_awaitable);

/// At most one coroutine waits at a time. wake() and cancel() are called on the same thread.
class Sleeper {
  public:
    explicit Sleeper(const net::any_io_executor& executor) : timer_(executor) {}

    /// Returns at `when`, or earlier if woken or cancelled; the caller looks at its own state.
    net::awaitable<void> until(TimePoint when) {
        if (cancelled_) co_return;
        timer_.expires_at(when);
        co_await timer_.async_wait(tuple_awaitable);
    }

    void wake() { timer_.cancel(); }
    void cancel() {
        cancelled_ = true;
        timer_.cancel();
    }
    bool cancelled() const { return cancelled_; }

  private:
    net::steady_timer timer_;
    bool cancelled_ = false;
};

}  // namespace sim
