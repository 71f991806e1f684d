#pragma once
// The semaphore in front of the engine: a hard cap on requests inside, a bounded FIFO queue of those waiting,
// both movable while running. One lock, O(1) per operation; entering, leaving and releasing allocate nothing.
//
// Invariants, all under the one lock:
//   running <= cap whenever a permit is given out (after shrinking, running falls to the cap by itself);
//   nobody is admitted past a waiter (strict FIFO over all threads);
//   a waiter exists only while running >= cap: a free permit never lies beside a sleeping waiter;
//   a ticket is in exactly one state, and a permit comes back exactly once, by a destructor at the latest.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "proxy/net/notifiable.hpp"

namespace noren::proxy::admission {

class Gate;

/// The right to be in the engine. Given back on destruction.
class Permit {
  public:
    Permit() = default;
    ~Permit() { release(); }
    Permit(Permit&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Permit& operator=(Permit&& other) noexcept {
        if (this != &other) {
            release();
            gate_ = std::exchange(other.gate_, nullptr);
        }
        return *this;
    }

    void release() noexcept;
    explicit operator bool() const { return gate_ != nullptr; }

  private:
    friend class Ticket;
    explicit Permit(Gate& gate) : gate_(&gate) {}
    Gate* gate_ = nullptr;
};

/// A place in the queue, owned by who waits; the gate links it in without copying. Destruction leaves the
/// queue, or gives back what was granted in the meantime.
class Ticket {
  public:
    enum class State : unsigned char { idle, waiting, granted, refused, taken };

    /// waiter: told once, from any thread and outside the lock, when a waiting ticket is granted or refused;
    /// kept by the gate until then, as the ticket may be gone before it is told.
    Ticket(Gate& gate, std::shared_ptr<net::Notifiable> waiter) : gate_(gate), waiter_(std::move(waiter)) {}
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    State state() const { return state_.load(std::memory_order_acquire); }

    /// After `granted`.
    Permit take();

    /// Gives the place up. True: it was still waiting and will never be granted. False: it was decided
    /// before.
    bool leave();

  private:
    friend class Gate;
    Gate& gate_;
    std::shared_ptr<net::Notifiable> waiter_;
    std::atomic<State> state_{State::idle};
    Ticket* next_ = nullptr;
    Ticket* previous_ = nullptr;
};

struct GateLimits {
    std::uint32_t max_concurrency = 0;  ///< 0 = unlimited
    std::uint32_t max_queue = 0;
};

/// Thread-safe. Outlives every ticket and permit.
class Gate {
  public:
    enum class Entry : unsigned char { admitted, queued, full, draining };

    explicit Gate(const GateLimits& limits) : limits_(limits) { publish_limits(); }

    /// One decision: admitted (take the permit), queued (the waiter will be told), or refused.
    Entry enter(Ticket& ticket);

    /// Growing wakes waiters at once; shrinking below what runs waits for it; who is queued stays queued.
    void set_limits(const GateLimits& limits);

    /// Refuses all who wait and all who come, until open(). Permits stay good.
    void close();
    /// Admits again.
    void open();

    // For metrics: each figure is right, the three need not be of the same instant.
    std::uint32_t running() const { return running_seen_.load(std::memory_order_relaxed); }
    std::uint32_t waiting() const { return waiting_seen_.load(std::memory_order_relaxed); }
    GateLimits limits() const;

  private:
    friend class Permit;
    friend class Ticket;
    using Waiter = std::shared_ptr<net::Notifiable>;

    bool has_room() const { return limits_.max_concurrency == 0 || running_ < limits_.max_concurrency; }
    void release() noexcept;
    bool leave(Ticket& ticket);
    void link(Ticket& ticket);
    void unlink(Ticket& ticket);
    Waiter grant_head();
    Waiter decide(Ticket& ticket, Ticket::State state);
    void set_running(std::uint32_t running);
    void publish_limits();

    mutable std::mutex mutex_;
    GateLimits limits_;
    bool closed_ = false;
    std::uint32_t running_ = 0;
    std::uint32_t waiting_ = 0;
    Ticket* head_ = nullptr;
    Ticket* tail_ = nullptr;
    std::atomic<std::uint32_t> running_seen_{0}, waiting_seen_{0}, cap_seen_{0}, queue_seen_{0};
};

}  // namespace noren::proxy::admission
