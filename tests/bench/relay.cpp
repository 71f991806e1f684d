// noren-bench-relay LISTEN_PORT UPSTREAM_PORT [--second-thread]: the least a relay in user space can do, as
// the floor for the others. One thread; what one socket of a pair has is read and written to the other:
// epoll_wait, read, write. No HTTP, nothing is looked at.
//   --second-thread: beside it a thread that sleeps for ever: what that alone does to the delays.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t k_buffer = 64 * 1024;

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

struct Pair;

/// One of a pair's two sockets.
struct Side {
    int fd = -1;
    Pair* pair = nullptr;
    Side* other = nullptr;
    std::string unsent;  ///< read from the other side, not yet taken by this one
    bool ended = false;  ///< has sent its FIN
    std::uint32_t events = 0;
};

struct Pair {
    Pair(int client, int upstream) {
        sides[0].fd = client;
        sides[1].fd = upstream;
        for (std::size_t i = 0; i < 2; ++i) {
            sides[i].pair = this;
            sides[i].other = &sides[1 - i];
        }
    }
    ~Pair() {
        for (const Side& side : sides)
            ::close(side.fd);
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    std::array<Side, 2> sides;
    bool over = false;
};

class Relay {
  public:
    Relay(std::uint16_t port, std::uint16_t upstream)
        : upstream_(loopback(upstream)), epoll_(::epoll_create1(0)) {
        const sockaddr_in address = loopback(port);
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        const int on = 1;
        ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(listener_, 4096) != 0) {
            std::perror("noren-bench-relay");
            std::exit(1);
        }
        epoll_event event{};
        event.events = EPOLLIN;
        ::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener_, &event);
    }

    [[noreturn]] void run() {
        std::array<epoll_event, 256> events;
        for (;;) {
            const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
            for (int i = 0; i < count; ++i) {
                const epoll_event& event = events[static_cast<std::size_t>(i)];
                if (event.data.ptr == nullptr)
                    accept_all();
                else
                    serve(*static_cast<Side*>(event.data.ptr), event.events);
            }
            finished_.clear();  // only now: the other side of one may have been in the same batch
        }
    }

  private:
    void accept_all() {
        for (int fd; (fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
            const int up = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
            if (up < 0) {
                ::close(fd);
                continue;
            }
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            ::setsockopt(up, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            // In progress, most likely; a failure shows as EPOLLERR.
            (void)::connect(up, reinterpret_cast<const sockaddr*>(&upstream_), sizeof upstream_);
            auto* const pair = new Pair(fd, up);
            for (Side& side : pair->sides)
                want(side, EPOLLIN);
        }
    }

    void want(Side& side, std::uint32_t events) {
        if (side.events == events) return;
        epoll_event event{};
        event.events = events;
        event.data.ptr = &side;
        ::epoll_ctl(epoll_, side.events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, side.fd, &event);
        side.events = events;
    }

    void serve(Side& side, std::uint32_t events) {
        if (side.pair->over) return;
        const bool readable = (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
        if ((events & EPOLLOUT) != 0 && !flush(side)) return;
        // What this side's reader has not taken is as much as is held: the rest stays with the kernel.
        if (readable && side.other->unsent.empty() && !side.ended) pump(side);
        if ((events & EPOLLERR) != 0) finish(*side.pair);
    }

    void pump(Side& side) {
        const ssize_t size = ::read(side.fd, buffer_.data(), buffer_.size());
        if (size < 0) {
            if (errno != EAGAIN) finish(*side.pair);
            return;
        }
        if (size == 0) {
            side.ended = true;
            ::shutdown(side.other->fd, SHUT_WR);
            if (side.other->ended) return finish(*side.pair);
            return want_what_is_due(side);
        }
        Side& to = *side.other;
        const auto got = static_cast<std::size_t>(size);
        const ssize_t written = ::write(to.fd, buffer_.data(), got);
        if (written == size) return;
        if (written < 0 && errno != EAGAIN) return finish(*side.pair);
        const std::size_t taken = written < 0 ? 0 : static_cast<std::size_t>(written);
        to.unsent.assign(buffer_.data() + taken, got - taken);
        want_what_is_due(to);
        want_what_is_due(side);
    }

    bool flush(Side& side) {
        const ssize_t written = ::write(side.fd, side.unsent.data(), side.unsent.size());
        if (written < 0 && errno == EAGAIN) return true;
        if (written < 0) {
            finish(*side.pair);
            return false;
        }
        side.unsent.erase(0, static_cast<std::size_t>(written));
        if (side.unsent.empty()) {
            want_what_is_due(side);
            want_what_is_due(*side.other);
        }
        return true;
    }

    void want_what_is_due(Side& side) {
        const std::uint32_t in = side.ended || !side.other->unsent.empty() ? 0U : EPOLLIN;
        const std::uint32_t out = side.unsent.empty() ? 0U : EPOLLOUT;
        // Never 0, which stands for "not registered".
        want(side, in | out | EPOLLERR);
    }

    void finish(Pair& pair) {
        if (pair.over) return;
        pair.over = true;
        finished_.emplace_back(&pair);
    }

    const sockaddr_in upstream_;
    const int epoll_;
    int listener_ = -1;
    std::array<char, k_buffer> buffer_{};
    std::vector<std::unique_ptr<Pair>> finished_;
};

}  // namespace

int main(int argc, char** argv) {
    const bool second_thread = argc == 4 && std::string_view(argv[3]) == "--second-thread";
    if (argc != 3 && !second_thread) {
        std::fprintf(stderr, "usage: noren-bench-relay LISTEN_PORT UPSTREAM_PORT [--second-thread]\n");
        return 2;
    }
    if (second_thread) std::thread([] { ::pause(); }).detach();
    std::signal(SIGPIPE, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    static Relay relay(static_cast<std::uint16_t>(std::atoi(argv[1])),
                       static_cast<std::uint16_t>(std::atoi(argv[2])));
    relay.run();
}
