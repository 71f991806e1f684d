#include "proxy/net/acceptor.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

namespace noren::proxy::net {
namespace {

// Then it is the turn of the connections that are there already.
constexpr int k_accepts_per_turn = 16;
// With no descriptor and no memory for anything: how long the backlog has to wait.
constexpr std::chrono::milliseconds k_pause{20};

int spare_descriptor() {
    return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

Acceptor::Acceptor(Loop& loop, int descriptor, Events events)
    : loop_(loop),
      descriptor_(descriptor),
      reserve_(spare_descriptor()),
      events_(std::move(events)),
      pause_(loop, [this] { resume(); }) {
    if (const int error = loop_.watch_shared(descriptor_, *this))
        throw std::system_error(error, std::generic_category(), "cannot watch a listening socket");
}

Acceptor::~Acceptor() {
    loop_.forget(*this);
    ::close(descriptor_);
    if (reserve_ >= 0) ::close(reserve_);
}

void Acceptor::ready(std::uint32_t) {
    for (int i = 0; i < k_accepts_per_turn; ++i) {
        const int client = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            events_.connected(client);
            continue;
        }
        switch (errno) {
            case EAGAIN:
                return;
            case EMFILE:
            case ENFILE:
                shed_one();
                break;
            case ENOBUFS:
            case ENOMEM:
                pause();
                return;
            default:
                break;  // of that one connection: it was gone before it was taken (accept(2))
        }
    }
}

void Acceptor::shed_one() {
    if (reserve_ < 0) return pause();
    ::close(reserve_);
    const int client = ::accept4(descriptor_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client >= 0) {
        ::close(client);
        events_.shed();
    }
    reserve_ = spare_descriptor();
}

void Acceptor::pause() {
    loop_.unwatch(descriptor_);
    pause_.set(Clock::now() + k_pause);
}

void Acceptor::resume() {
    if (reserve_ < 0) reserve_ = spare_descriptor();
    if (loop_.watch_shared(descriptor_, *this) != 0) pause();
}

}  // namespace noren::proxy::net
