#pragma once
// One thread's event loop: which descriptors are ready (epoll), what is due, and what other threads ask for.
//
// Not Asio's, on the workers: a descriptor is registered once, edge-triggered, for as long as it lives, where
// Asio arms every wait for readiness with a system call of its own. On the token path that was one call in
// four (tests/bench/README.md).

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "metrics/clock.hpp"

namespace noren::proxy::net {

using metrics::Clock;
using metrics::TimePoint;

inline constexpr TimePoint k_never = TimePoint::max();

class Loop;

/// Is told what epoll has to say of one descriptor. Stays where it is while it is watched.
class Watcher {
  public:
    /// events: EPOLLIN and so on. May destroy the watcher.
    virtual void ready(std::uint32_t events) = 0;

  protected:
    ~Watcher() = default;
};

/// Something to be run in a later turn. It is linked into the loop, so that posting it allocates nothing.
class Posting {
  public:
    virtual void run() = 0;
    /// The loop goes without having run it.
    virtual void drop() noexcept = 0;

  protected:
    ~Posting() = default;

  private:
    friend class Loop;
    Posting* next_ = nullptr;
};

/// A function to be called at a time. The loop's thread only; cancelled by its destructor.
class Timer {
  public:
    Timer(Loop& loop, std::function<void()> expired);
    ~Timer() { cancel(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    /// Once, in place of any earlier time. Never before `at`, up to a millisecond after it. Allocates
    /// nothing.
    void set(TimePoint at);
    void cancel();

  private:
    friend class Loop;
    using Queue = std::multimap<TimePoint, Timer*>;

    Loop& loop_;
    std::function<void()> expired_;
    Queue::node_type unused_;  ///< the node, while it is in no queue
    Queue::iterator place_;    ///< the node, while it is
};

/// The thread's that runs it, but for post().
class Loop {
  public:
    /// Throws std::system_error where there is no descriptor left.
    Loop();
    ~Loop();
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// Until stop().
    void run();
    void stop() { stopped_ = true; }

    /// One turn: sleeps until something happens or `until`, and deals with it.
    void turn(TimePoint until);

    /// Runs it in a later turn. Any thread, also before run() and after it (then never run).
    void post(std::function<void()> task);
    /// Likewise. It must not be posted again before it is run or dropped.
    void post(Posting& posting) noexcept;

    /// Edge-triggered, all directions, until the descriptor is closed. 0, or errno.
    int watch(int descriptor, Watcher& watcher);
    /// Level-triggered, for reading, one of several loops that share the descriptor.
    int watch_shared(int descriptor, Watcher& watcher);
    void unwatch(int descriptor);
    /// Before the watcher goes: what epoll has said of it already is dropped.
    void forget(const Watcher& watcher);

  private:
    friend class Timer;

    static constexpr int k_most_turns_without_timers = 16;

    std::size_t await_events(TimePoint until);
    void run_due_timers();
    void run_posted(bool mail);
    bool is_own_thread() const;
    void wake();

    int epoll_;
    int mail_;  ///< an eventfd: something was posted
    bool stopped_ = false;
    std::array<epoll_event, 256> events_{};
    std::size_t reported_ = 0;  ///< of events_, in the present turn
    int turns_without_timers_ = 0;
    Timer::Queue timers_;
    std::atomic<std::thread::id> thread_;  ///< that runs it
    /// First in, first out.
    struct Queue {
        bool empty() const { return tasks.empty() && first == nullptr; }
        void add(Posting& posting);
        std::vector<std::function<void()>> tasks;
        Posting* first = nullptr;
        Posting* last = nullptr;
    };
    static void run_all(Queue& queue);
    Queue own_;  ///< posted by the loop's own thread
    std::mutex mutex_;
    Queue posted_;  ///< ... by others
};

}  // namespace noren::proxy::net
