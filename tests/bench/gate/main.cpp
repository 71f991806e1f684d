// noren-gate-bench [THREADS [WAITERS [HANDOVERS]]]: the gate under full contention, cap 1, between threads
// that each run a loop of noren's. All WAITERS always queue or hold the permit: who is told of it takes it,
// gives it back and queues again. Tells
//   the hand-over: from giving the permit back until the next in line holds it on its own thread
//   what enter + leave (anywhere in the queue) and a hand-over cost with 10 and with WAITERS waiting
//   the memory of a place in the queue
// Ends with 1 if the cap was exceeded, a permit got lost or the cost grows with the queue; the times are only
// told.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "proxy/admission/gate.hpp"
#include "proxy/net/loop.hpp"

namespace {

namespace net = noren::proxy::net;
using noren::proxy::admission::Gate;
using noren::proxy::admission::Permit;
using noren::proxy::admission::Ticket;

constexpr std::uint32_t k_queue = 1'000'000;

std::int64_t now_ns() {
    return std::chrono::nanoseconds(net::Clock::now().time_since_epoch()).count();
}

/// What the threads share.
struct Contest {
    Gate gate{{1, k_queue}};
    std::atomic<std::int64_t> released{0};  ///< when the permit was last given back, ns
    std::atomic<int> inside{0};
    std::atomic<std::uint64_t> exceeded{0}, handovers{0};
    std::uint64_t goal = 0;
    std::atomic<bool> over{false};
};

/// A worker as far as the gate knows one.
struct Thread {
    net::Loop loop;
    std::vector<std::int64_t> times;  ///< of hand-overs to it, ns
};

/// One who waits; told by any thread, run by its own.
class Waiter final : public net::Notifiable,
                     public net::Posting,
                     public std::enable_shared_from_this<Waiter> {
  public:
    Waiter(Contest& contest, Thread& thread) : contest_(contest), thread_(thread) {}

    void queue_up() {
        ticket_.emplace(contest_.gate, shared_from_this());
        if (contest_.gate.enter(*ticket_) == Gate::Entry::admitted) thread_.loop.post(*this);
    }
    void post() noexcept override { thread_.loop.post(*this); }
    void drop() noexcept override {}
    void run() override {
        Permit permit = ticket_->take();
        const std::int64_t released = contest_.released;
        if (released != 0) thread_.times.push_back(now_ns() - released);
        if (contest_.inside.fetch_add(1) != 0) ++contest_.exceeded;
        contest_.over = contest_.over || ++contest_.handovers >= contest_.goal;
        contest_.inside.fetch_sub(1);
        contest_.released = now_ns();
        permit.release();
        if (contest_.over) return;
        queue_up();
    }
    /// Breaks the circle of gate, ticket and waiter.
    void forget() { ticket_.reset(); }

  private:
    Contest& contest_;
    Thread& thread_;
    std::optional<Ticket> ticket_;
};

struct Contention {
    std::vector<std::int64_t> times;
    bool sound = false;
};

Contention contend(std::size_t threads, std::size_t waiters, std::uint64_t handovers) {
    Contest contest;
    contest.goal = handovers;
    std::vector<std::unique_ptr<Thread>> loops;
    for (std::size_t i = 0; i < threads; ++i)
        loops.push_back(std::make_unique<Thread>());
    std::vector<std::shared_ptr<Waiter>> all;
    for (std::size_t i = 0; i < waiters; ++i)
        all.push_back(std::make_shared<Waiter>(contest, *loops[i % threads]));
    for (const auto& waiter : all)
        waiter->queue_up();
    std::vector<std::thread> running;
    for (const auto& thread : loops)
        running.emplace_back([&loop = thread->loop] { loop.run(); });
    // Every one of the waiters takes its turn: the last of them ends the chain.
    while (contest.gate.waiting() + contest.gate.running() > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (const auto& thread : loops)
        thread->loop.post([&loop = thread->loop] { loop.stop(); });
    for (std::thread& one : running)
        one.join();
    for (const auto& waiter : all)
        waiter->forget();
    Contention found;
    for (const auto& thread : loops)
        found.times.insert(found.times.end(), thread->times.begin(), thread->times.end());
    found.sound = contest.exceeded == 0 && contest.gate.running() == 0 && contest.handovers >= handovers;
    return found;
}

double quantile(std::vector<std::int64_t>& sorted, double q) {
    return static_cast<double>(sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))]) /
           1e3;
}

/// Nobody to tell.
struct Deaf final : net::Notifiable {
    void post() noexcept override {}
};

struct Costs {
    double come_and_go = 0, handover = 0;  ///< ns
};

/// On one thread, with so many waiting all the time.
Costs costs_with(std::size_t waiting) {
    constexpr int k_times = 200'000;
    Gate gate({1, k_queue});
    const auto deaf = std::make_shared<Deaf>();
    Ticket first(gate, deaf);
    gate.enter(first);
    Permit permit = first.take();
    std::vector<std::unique_ptr<Ticket>> queue;
    for (std::size_t i = 0; i < waiting; ++i) {
        queue.push_back(std::make_unique<Ticket>(gate, deaf));
        gate.enter(*queue.back());
    }
    Costs best{1e9, 1e9};
    for (int round = 0; round < 5; ++round) {
        std::int64_t start = now_ns();
        for (int i = 0; i < k_times; ++i) {
            // In turn from all places of the queue; comes again at its end.
            auto& ticket = queue[static_cast<std::size_t>(i) * 7919 % waiting];
            ticket->leave();
            ticket = std::make_unique<Ticket>(gate, deaf);
            gate.enter(*ticket);
        }
        best.come_and_go = std::min(best.come_and_go, static_cast<double>(now_ns() - start) / k_times);
        // A queue in the order of the vector, as the head has to be known.
        for (auto& ticket : queue)
            ticket->leave();
        for (auto& ticket : queue) {
            ticket = std::make_unique<Ticket>(gate, deaf);
            gate.enter(*ticket);
        }
        start = now_ns();
        for (int i = 0; i < k_times; ++i) {
            auto& head = queue[static_cast<std::size_t>(i) % waiting];
            permit.release();
            permit = head->take();
            head = std::make_unique<Ticket>(gate, deaf);
            gate.enter(*head);
        }
        best.handover = std::min(best.handover, static_cast<double>(now_ns() - start) / k_times);
    }
    permit.release();
    queue.clear();
    return best;
}

std::uint64_t argument(int argc, char** argv, int place, std::uint64_t otherwise) {
    return argc > place ? std::strtoull(argv[place], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t threads = argument(argc, argv, 1, 4), waiters = argument(argc, argv, 2, 10'000);
    Contention found = contend(threads, waiters, argument(argc, argv, 3, 200'000));
    std::sort(found.times.begin(), found.times.end());
    std::printf(
        "hand-over, %zu threads, cap 1, %zu waiters, %zu hand-overs: p50 %.1f us, p99 %.1f us, p99.9 %.1f "
        "us\n",
        threads, waiters, found.times.size(), quantile(found.times, 0.5), quantile(found.times, 0.99),
        quantile(found.times, 0.999));
    std::printf("%s: never more than the cap, no permit lost\n", found.sound ? "ok  " : "FAIL");

    const Costs few = costs_with(10), many = costs_with(waiters);
    // What looks at each waiter would take a thousand times as long; what is cold in the cache, some times as
    // long.
    const bool flat = many.come_and_go < 20 * few.come_and_go && many.handover < 20 * few.handover;
    std::printf("with 10 waiting: enter and leave %.0f ns, hand-over %.0f ns; with %zu: %.0f ns, %.0f ns\n",
                few.come_and_go, few.handover, waiters, many.come_and_go, many.handover);
    std::printf("%s: the cost does not grow with the queue\n", flat ? "ok  " : "FAIL");
    std::printf("a place in the queue: %zu bytes, allocated by who waits, none by the gate\n",
                sizeof(Ticket));
    return found.sound && flat ? 0 : 1;
}
