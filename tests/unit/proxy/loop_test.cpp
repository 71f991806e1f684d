#include "proxy/net/loop.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>

#include "proxy/net/acceptor.hpp"
#include "proxy/net/listener.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/task.hpp"
#include "proxy/net/wakeup.hpp"

namespace noren::proxy::net {
namespace {

using namespace std::chrono_literals;

/// Turns until done, for 20 s at most.
template <typename Done>
bool runs_until(Loop& loop, Done&& done) {
    const TimePoint end = Clock::now() + 20s;
    while (!done() && Clock::now() < end)
        loop.turn(Clock::now() + 10ms);
    return done();
}

struct Pair {
    Pair() {
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    }
    std::array<int, 2> ends{};
};

/// Counts how often it is told.
struct Counter final : Watcher {
    void ready(std::uint32_t seen) override {
        ++times;
        events |= seen;
    }
    int times = 0;
    std::uint32_t events = 0;
};

/// The number that the next descriptor would get.
rlim_t next_descriptor() {
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(fd);
    return static_cast<rlim_t>(fd);
}

}  // namespace

TEST_CASE("timers fire in order, not before their time, and once") {
    Loop loop;
    std::string fired;
    const TimePoint now = Clock::now();
    Timer late(loop, [&] { fired += "late "; });
    Timer soon(loop, [&] { fired += "soon "; });
    Timer moved(loop, [&] { fired += "moved "; });
    Timer cancelled(loop, [&] { fired += "cancelled "; });
    late.set(now + 30ms);
    soon.set(now + 10ms);
    moved.set(now + 1h);
    moved.set(now + 20ms);
    cancelled.set(now + 5ms);
    cancelled.cancel();
    REQUIRE(runs_until(loop, [&] { return fired.size() >= 16; }));
    CHECK(fired == "soon moved late ");
    CHECK(Clock::now() >= now + 30ms);
    soon.set(Clock::now() - 1s);  // the past is due at once
    CHECK(runs_until(loop, [&] { return fired.ends_with("late soon "); }));
}

TEST_CASE("a timer may be destroyed by what it calls") {
    Loop loop;
    bool fired = false;
    std::unique_ptr<Timer> timer;
    timer = std::make_unique<Timer>(loop, [&] {
        fired = true;
        timer.reset();
    });
    timer->set(Clock::now());
    CHECK(runs_until(loop, [&] { return fired; }));
    CHECK(timer == nullptr);
}

TEST_CASE("what is posted runs later, on the loop's thread, in order for each poster") {
    Loop loop;
    std::vector<std::vector<int>> seen(4);
    std::thread::id ran_on;
    std::thread runner([&] { loop.run(); });
    std::vector<std::thread> posters;
    for (std::size_t p = 0; p < seen.size(); ++p)
        posters.emplace_back([&, p] {
            for (int i = 0; i < 10'000; ++i)
                loop.post([&, p, i] {
                    seen[p].push_back(i);
                    ran_on = std::this_thread::get_id();
                });
        });
    for (std::thread& poster : posters)
        poster.join();
    const std::thread::id expected = runner.get_id();
    loop.post([&] {
        loop.post([&] { loop.stop(); });  // by the loop itself: the next turn
    });
    runner.join();
    CHECK(ran_on == expected);
    for (const auto& numbers : seen) {
        REQUIRE(numbers.size() == 10'000);
        CHECK(std::is_sorted(numbers.begin(), numbers.end()));
    }
}

TEST_CASE("a watcher is told of news, and of nothing once it is forgotten") {
    Loop loop;
    Pair pair;
    Counter counter;
    REQUIRE(loop.watch(pair.ends[0], counter) == 0);
    REQUIRE(::write(pair.ends[1], "x", 1) == 1);
    REQUIRE(runs_until(loop, [&] { return (counter.events & EPOLLIN) != 0; }));
    const int told = counter.times;
    loop.turn(Clock::now());
    CHECK(counter.times == told);  // an edge, not a level
    REQUIRE(::write(pair.ends[1], "x", 1) == 1);
    REQUIRE(runs_until(loop, [&] { return counter.times == told + 1; }));
    ::close(pair.ends[0]);
    loop.forget(counter);
    ::close(pair.ends[1]);
    loop.turn(Clock::now() + 5ms);
    CHECK(counter.times == told + 1);
    Counter none;
    CHECK(loop.watch(-1, none) == EBADF);
}

TEST_CASE("a watcher that goes while it and others are being told takes nobody along") {
    Loop loop;
    Pair first, second;
    Counter survivor;
    struct Destroyer final : Watcher {
        Destroyer(Loop& l, Watcher& v) : loop(l), victim(v) {}
        void ready(std::uint32_t) override { loop.forget(victim); }
        Loop& loop;
        Watcher& victim;
    } destroyer(loop, survivor);
    REQUIRE(loop.watch(first.ends[0], destroyer) == 0);
    REQUIRE(loop.watch(second.ends[0], survivor) == 0);
    loop.turn(Clock::now());  // both are writable: whoever comes first, nobody is told after being forgotten
    CHECK(survivor.times <= 1);
    for (const int fd : {first.ends[0], first.ends[1], second.ends[0], second.ends[1]})
        ::close(fd);
}

namespace {

Task<int> number(Wakeup& wakeup, int value) {
    if (value % 2 != 0) co_await wakeup.wait(Clock::now() + 1ms);
    if (value < 0) throw std::runtime_error("below zero");
    co_return value;
}

Task<> add_up(Wakeup& wakeup, int count, int& sum) {
    for (int i = 0; i < count; ++i)
        sum += co_await number(wakeup, i);
}

Task<> fail(Wakeup& wakeup, std::string& caught) {
    try {
        co_await number(wakeup, -1);
    } catch (const std::runtime_error& error) {
        caught = error.what();
    }
    co_await number(wakeup, -2);  // nobody catches this one
}

struct Flag {
    explicit Flag(bool& f) : flag(f) {}
    ~Flag() { flag = true; }
    bool& flag;
};

Task<> sleep_for_ever(Wakeup& wakeup, bool& gone) {
    const Flag flag(gone);
    for (;;)
        co_await wakeup.wait(k_never);
}

}  // namespace

TEST_CASE("tasks wait for each other, results and exceptions come back") {
    Loop loop;
    Wakeup wakeup(loop);
    int sum = 0;
    spawn(add_up(wakeup, 20, sum));
    CHECK(runs_until(loop, [&] { return sum == 190; }));
    std::string caught;
    spawn(fail(wakeup, caught));
    CHECK(caught.empty());
    CHECK(runs_until(loop, [&] { return caught == "below zero"; }));
}

TEST_CASE("a task that is destroyed while it sleeps destroys what it holds") {
    Loop loop;
    Wakeup wakeup(loop);
    bool gone = false;
    {
        const Task<> task = sleep_for_ever(wakeup, gone);
        task.start();
        loop.turn(Clock::now());
        CHECK_FALSE(gone);
    }
    CHECK(gone);
}

TEST_CASE("a wakeup sleeps until it is notified or its deadline is over, whichever comes first") {
    Loop loop;
    auto wakeup = std::make_unique<Wakeup>(loop);
    int woken = 0;
    struct Sleeper {
        static Task<> run(Wakeup& w, int& count, TimePoint deadline) {
            co_await w.wait(deadline);
            ++count;
        }
    };
    SECTION("notified before it sleeps") {
        wakeup->waker().notify();
        spawn(Sleeper::run(*wakeup, woken, k_never));
        CHECK(woken == 1);
    }
    SECTION("notified while it sleeps") {
        spawn(Sleeper::run(*wakeup, woken, k_never));
        CHECK(woken == 0);
        wakeup->waker().notify();
        CHECK(woken == 1);
    }
    SECTION("by its deadline, also when the one before was earlier or later") {
        for (const auto wait : {20ms, 5ms, 30ms}) {
            const TimePoint deadline = Clock::now() + wait;
            spawn(Sleeper::run(*wakeup, woken, deadline));
            const int before = woken;
            REQUIRE(runs_until(loop, [&] { return woken == before + 1; }));
            CHECK(Clock::now() >= deadline);
        }
    }
    SECTION("posted by another thread, or when nobody is there any more") {
        spawn(Sleeper::run(*wakeup, woken, k_never));
        const Waker waker = wakeup->waker();
        std::thread([waker] { waker.post(); }).join();
        CHECK(runs_until(loop, [&] { return woken == 1; }));
        waker.post();
        wakeup.reset();
        loop.turn(Clock::now());
        CHECK(woken == 1);
    }
}

TEST_CASE("a socket says what it can do now, and wakes when that changes") {
    Loop loop;
    Wakeup wakeup(loop);
    Pair pair;
    Socket socket(loop, Descriptor(pair.ends[0]));
    socket.wake(wakeup.waker());
    std::array<char, 16> buffer{};
    int woken = 0;
    struct Sleeper {
        static Task<> run(Wakeup& w, int& count) {
            for (;; ++count)
                co_await w.wait(k_never);
        }
    };
    const Task<> sleeper = Sleeper::run(wakeup, woken);
    sleeper.start();

    CHECK(socket.read(buffer).status == IoStatus::would_block);
    REQUIRE(::write(pair.ends[1], "hello", 5) == 5);
    REQUIRE(runs_until(loop, [&] { return woken > 0; }));
    CHECK(socket.read(buffer).bytes == 5);
    CHECK(socket.read(buffer).status == IoStatus::would_block);

    const std::string block(100'000, 'x');
    while (socket.write(block).status == IoStatus::ok) {
    }
    CHECK(socket.write("y").status == IoStatus::would_block);
    const int before = woken;
    std::vector<char> sink(1'000'000);
    while (::read(pair.ends[1], sink.data(), sink.size()) > 0) {
    }
    REQUIRE(runs_until(loop, [&] { return woken > before; }));
    CHECK(socket.write("y").status == IoStatus::ok);
    REQUIRE(::read(pair.ends[1], sink.data(), sink.size()) == 1);

    CHECK_FALSE(socket.peer_closed());
    REQUIRE(::write(pair.ends[1], "last", 4) == 4);
    ::close(pair.ends[1]);
    REQUIRE(runs_until(loop, [&] { return socket.peer_closed(); }));  // though nobody has read
    CHECK(socket.read(buffer).bytes == 4);
    CHECK(socket.read(buffer).status == IoStatus::closed);
    CHECK(socket.write("z").status == IoStatus::broken);
}

TEST_CASE("connecting tells how it ended") {
    Loop loop;
    Wakeup wakeup(loop);
    ListenerSet listener({"127.0.0.1", 0, {}}, 1);
    const auto endpoint_of = [](std::uint16_t port) {
        return SocketAddress(boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), port));
    };
    Socket socket(loop, endpoint_of(listener.port()), wakeup.waker());
    REQUIRE(runs_until(loop, [&] { return socket.connect_result().has_value(); }));
    CHECK(socket.connect_result() == 0);
    listener.take(0).close();
    Socket refused(loop, endpoint_of(listener.port()), wakeup.waker());
    REQUIRE(runs_until(loop, [&] { return refused.connect_result().has_value(); }));
    CHECK(refused.connect_result() == ECONNREFUSED);
}

TEST_CASE("an acceptor takes every connection; without descriptors it lets go of one after the other") {
    Loop loop;
    Wakeup wakeup(loop);
    ListenerSet listener({"127.0.0.1", 0, {}}, 1);
    const SocketAddress endpoint(
        boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), listener.port()));
    std::vector<Descriptor> accepted;
    int shed = 0;
    ReserveDescriptor reserve;
    Acceptor acceptor(loop, listener.take(0), reserve,
                      {[&](Descriptor client) { accepted.push_back(std::move(client)); },
                       [&](std::string_view) { ++shed; }});
    std::vector<Socket> clients;
    for (int i = 0; i < 50; ++i)
        clients.emplace_back(loop, endpoint, wakeup.waker());
    REQUIRE(runs_until(loop, [&] { return accepted.size() == 50; }));

    // From here on there is no descriptor left.
    std::vector<Socket> turned_away;
    for (int i = 0; i < 10; ++i)
        turned_away.emplace_back(loop, endpoint, wakeup.waker());
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{next_descriptor(), before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const bool all_shed = runs_until(loop, [&] { return shed == 10; });
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(all_shed);
    for (const Socket& client : turned_away)
        CHECK(runs_until(loop, [&] { return client.peer_closed(); }));

    clients.emplace_back(loop, endpoint, wakeup.waker());  // and it goes on as before
    CHECK(runs_until(loop, [&] { return accepted.size() == 51; }));
}

TEST_CASE("without descriptors several acceptors let go of all who come, whoever gets the reserve") {
    constexpr int k_acceptors = 4, k_clients = 400;
    Loop here;
    Wakeup wakeup(here);
    ListenerSet listeners({"127.0.0.1", 0, {}}, k_acceptors);
    const SocketAddress endpoint(
        boost::asio::ip::tcp::endpoint(boost::asio::ip::address_v4::loopback(), listeners.port()));
    ReserveDescriptor reserve;
    std::atomic<int> accepted{0}, shed{0};
    std::vector<std::unique_ptr<Loop>> loops;
    std::vector<std::unique_ptr<Acceptor>> acceptors;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < k_acceptors; ++i) {
        loops.push_back(std::make_unique<Loop>());
        acceptors.push_back(std::make_unique<Acceptor>(
            *loops.back(), listeners.take(i), reserve,
            Acceptor::Events{[&](const Descriptor&) { ++accepted; }, [&](std::string_view) { ++shed; }}));
        threads.emplace_back([&loop = *loops.back()] { loop.run(); });
    }
    // One is served while there still is a descriptor: UBSan needs some when it sees a type for the first
    // time.
    std::vector<Socket> clients;
    clients.emplace_back(here, endpoint, wakeup.waker());
    REQUIRE(runs_until(here, [&] { return accepted == 1 && clients[0].connect_result(); }));

    // The others come while nobody accepts, so that all of them are waiting when the last descriptor goes.
    std::latch held(k_acceptors + 1), go_on(1);
    for (const auto& loop : loops)
        loop->post([&] {
            held.arrive_and_wait();
            go_on.wait();
        });
    held.arrive_and_wait();
    for (int i = 0; i < k_clients; ++i)
        clients.emplace_back(here, endpoint, wakeup.waker());
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const rlimit none{next_descriptor(), before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    go_on.count_down();
    const bool all_shed = runs_until(here, [&] { return shed + accepted == k_clients + 1; });
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(all_shed);
    CHECK(shed == k_clients);
    for (std::size_t i = 0; i < k_acceptors; ++i) {
        loops[i]->post([&, i] { loops[i]->stop(); });
        threads[i].join();
    }
}

}  // namespace noren::proxy::net
