#pragma once
// The one thing a connection's coroutine sleeps on. Sockets that become ready, a granted permit, a finished
// connect and a stop request all call notify(); the coroutine then looks at the state it cares about. So no
// operation ever has to be cancelled to let another one through, and every wait has a deadline.

#include <chrono>
#include <coroutine>
#include <memory>
#include <utility>

#include "proxy/net/loop.hpp"
#include "proxy/net/notifiable.hpp"

namespace noren::proxy::net {

/// A zero duration means no limit.
inline TimePoint deadline_after(TimePoint from, std::chrono::milliseconds duration) {
    return duration.count() == 0 ? k_never : from + duration;
}

class Wakeup;

/// Wakes a coroutine from wherever something happened. A copyable handle that may outlive the sleeper: a
/// task that was already posted when the connection ended finds nobody and does nothing.
class Waker {
  public:
    /// Resumes the sleeper inside the call, or lets its next wait() return at once. The worker's thread only.
    void notify() const;

    /// notify() in a later turn of the loop. Any thread; allocates nothing.
    void post() const noexcept;

    /// The same, for who need not know what it wakes.
    std::shared_ptr<Notifiable> notifiable() const;

  private:
    friend class Wakeup;
    struct State;
    explicit Waker(std::shared_ptr<State> state) : state_(std::move(state)) {}
    std::shared_ptr<State> state_;
};

/// The sleeper's side, owned by the connection. The worker's thread only.
class Wakeup {
  public:
    explicit Wakeup(Loop& loop);
    ~Wakeup();
    Wakeup(const Wakeup&) = delete;
    Wakeup& operator=(const Wakeup&) = delete;

    /// What wait() has to say to co_await.
    class Sleep {
      public:
        bool await_ready() const noexcept;
        void await_suspend(std::coroutine_handle<> sleeper) const;
        void await_resume() const noexcept;

      private:
        friend class Wakeup;
        Sleep(Waker::State& state, TimePoint deadline) : state_(&state), deadline_(deadline) {}
        Waker::State* state_;
        TimePoint deadline_;
    };

    /// co_await it: sleeps until a notify() or the deadline, whichever comes first. One sleeper at a time.
    Sleep wait(TimePoint deadline);

    const Waker& waker() const { return waker_; }

  private:
    Waker waker_;
};

}  // namespace noren::proxy::net
