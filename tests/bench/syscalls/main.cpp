// noren-syscall-bench: what one system call costs on this machine, those that a relay makes, with messages
// the size of a token event. CPU time of the calling process per call, in nanoseconds: the best and the
// median of a few rounds. What is told of a pair of calls is what both take together.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

constexpr std::size_t k_message = 250;
constexpr int k_rounds = 9;

std::array<char, 65536> buffer;

std::int64_t clock_ns(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t cpu_ns() {
    return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

[[noreturn]] void give_up(const char* what) {
    std::perror(what);
    std::exit(1);
}

void must(bool good, const char* what) {
    if (!good) give_up(what);
}

/// Two ends of a connection over loopback.
struct Connection {
    Connection() {
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        must(::bind(listener, generic, size) == 0 && ::listen(listener, 1) == 0, "listen");
        must(::getsockname(listener, generic, &size) == 0, "getsockname");
        near = ::socket(AF_INET, SOCK_STREAM, 0);
        must(::connect(near, generic, size) == 0, "connect");
        far = ::accept(listener, nullptr, nullptr);
        must(far >= 0, "accept");
        ::close(listener);
        const int on = 1;
        for (const int fd : {near, far})
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    ~Connection() {
        ::close(near);
        ::close(far);
    }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    int near = -1, far = -1;
};

void send_message(int fd) {
    must(::write(fd, buffer.data(), k_message) == static_cast<ssize_t>(k_message), "write");
}

void receive_message(int fd) {
    must(::read(fd, buffer.data(), buffer.size()) == static_cast<ssize_t>(k_message), "read");
}

void tell(const char* name, std::vector<double> per_call) {
    std::sort(per_call.begin(), per_call.end());
    std::printf("%-52s %8.0f %8.0f\n", name, per_call.front(), per_call[per_call.size() / 2]);
    std::fflush(stdout);
}

template <typename Prepare, typename Call>
void measure(const char* name, int times, Prepare prepare, Call call) {
    std::vector<double> rounds;
    for (int round = 0; round < k_rounds; ++round) {
        prepare();
        const std::int64_t start = cpu_ns();
        for (int i = 0; i < times; ++i)
            call();
        rounds.push_back(static_cast<double>(cpu_ns() - start) / times);
    }
    tell(name, rounds);
}

constexpr auto k_nothing = [] {};

int watched(int fd, std::uint32_t events) {
    const int epoll = ::epoll_create1(0);
    epoll_event event{};
    event.events = events;
    must(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    return epoll;
}

void measure_alone() {
    Connection tcp;
    std::array<epoll_event, 8> events{};
    const int epoll = watched(tcp.far, EPOLLIN);
    volatile std::int64_t seen = 0;
    measure("clock_gettime(MONOTONIC)", 300'000, k_nothing, [&] { seen = seen + clock_ns(CLOCK_MONOTONIC); });
    measure("a system call that does nothing (getppid)", 100'000, k_nothing, [] { ::syscall(SYS_getppid); });
    measure("epoll_wait, nothing ready", 100'000, k_nothing,
            [&] { ::epoll_wait(epoll, events.data(), 8, 0); });
    measure("epoll_ctl(MOD)", 100'000, k_nothing, [&] {
        epoll_event event{};
        event.events = EPOLLIN;
        ::epoll_ctl(epoll, EPOLL_CTL_MOD, tcp.far, &event);
    });
    const int mail = ::eventfd(0, EFD_NONBLOCK);
    measure("write to an eventfd nobody waits for", 100'000, k_nothing,
            [&] { must(::eventfd_write(mail, 1) == 0, "eventfd"); });
    measure("read, nothing there (EAGAIN)", 100'000, k_nothing,
            [&] { (void)::recv(tcp.far, buffer.data(), buffer.size(), MSG_DONTWAIT); });
    constexpr int k_fill = 100;  // fits into any socket buffer
    const auto fill = [&] {
        for (int i = 0; i < k_fill; ++i)
            send_message(tcp.near);
    };
    const auto drain = [&] {
        while (::recv(tcp.far, buffer.data(), buffer.size(), MSG_DONTWAIT) > 0) {
        }
    };
    measure("read of 250 bytes", k_fill, fill, [&] {
        must(::read(tcp.far, buffer.data(), k_message) == static_cast<ssize_t>(k_message), "read");
    });
    measure("write of 250 bytes, nobody waits", k_fill, drain, [&] { send_message(tcp.near); });
    drain();
    measure("write, then read at the other end", 50'000, k_nothing, [&] {
        send_message(tcp.near);
        receive_message(tcp.far);
    });
    measure("write, then epoll_wait and read at the other end", 50'000, k_nothing, [&] {
        send_message(tcp.near);
        must(::epoll_wait(epoll, events.data(), 8, -1) == 1, "epoll_wait");
        receive_message(tcp.far);
    });
    ::close(mail);
    ::close(epoll);
}

/// A process that reads what comes, asleep in epoll_wait between two messages; answers if it is told to.
pid_t start_reader(const Connection& tcp, bool answers) {
    const pid_t child = ::fork();
    must(child >= 0, "fork");
    if (child > 0) return child;
    ::close(tcp.near);
    const int epoll = watched(tcp.far, EPOLLIN);
    std::array<epoll_event, 8> events{};
    for (;;) {
        (void)::epoll_wait(epoll, events.data(), 8, -1);
        if (::read(tcp.far, buffer.data(), buffer.size()) <= 0) ::_exit(0);
        if (answers) send_message(tcp.far);
    }
}

void end_reader(Connection& tcp, pid_t reader) {
    ::shutdown(tcp.near, SHUT_RDWR);
    ::waitpid(reader, nullptr, 0);
}

void measure_waking() {
    Connection tcp;
    const pid_t reader = start_reader(tcp, false);
    const timespec pause{0, 200'000};
    std::vector<double> rounds;
    for (int round = 0; round < k_rounds; ++round) {
        std::int64_t inside = 0;
        constexpr int k_times = 1'000;
        for (int i = 0; i < k_times; ++i) {
            ::nanosleep(&pause, nullptr);
            const std::int64_t start = cpu_ns();
            send_message(tcp.near);
            inside += cpu_ns() - start;
        }
        // One reading of the clock lies within each.
        const std::int64_t start = cpu_ns();
        for (int i = 0; i < k_times; ++i)
            (void)cpu_ns();
        rounds.push_back(static_cast<double>(inside - (cpu_ns() - start)) / k_times);
    }
    tell("write of 250 bytes that wakes a sleeping process", rounds);
    end_reader(tcp, reader);
}

void measure_hop() {
    Connection tcp;
    const pid_t reader = start_reader(tcp, true);
    clockid_t reader_clock{};
    must(::clock_getcpuclockid(reader, &reader_clock) == 0, "clock_getcpuclockid");
    const int epoll = watched(tcp.near, EPOLLIN);
    std::array<epoll_event, 8> events{};
    std::vector<double> cpu, wall;
    for (int round = 0; round < k_rounds; ++round) {
        constexpr int k_times = 2'000;
        const std::int64_t start_cpu = cpu_ns() + clock_ns(reader_clock), start = clock_ns(CLOCK_MONOTONIC);
        for (int i = 0; i < k_times; ++i) {
            send_message(tcp.near);
            must(::epoll_wait(epoll, events.data(), 8, -1) == 1, "epoll_wait");
            receive_message(tcp.near);
        }
        cpu.push_back(static_cast<double>(cpu_ns() + clock_ns(reader_clock) - start_cpu) / (2 * k_times));
        wall.push_back(static_cast<double>(clock_ns(CLOCK_MONOTONIC) - start) / (2 * k_times));
    }
    tell("one hop between two sleeping processes, CPU of both", cpu);
    tell("one hop between two sleeping processes, time", wall);
    end_reader(tcp, reader);
}

}  // namespace

int main() {
    std::signal(SIGPIPE, SIG_IGN);
    std::printf("%-52s %8s %8s\n", "ns of CPU", "best", "median");
    measure_alone();
    measure_waking();
    measure_hop();
}
