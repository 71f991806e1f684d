#include "proxy/net/acceptor.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

namespace noren::proxy::net {
namespace {

// Then it is the turn of the connections that are there already.
constexpr int k_accepts_per_turn = 16;
// With no descriptor and no memory for anything: how long the backlog has to wait.
constexpr std::chrono::milliseconds k_pause{20};

Descriptor spare_descriptor() {
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Descriptor accept_on(const Descriptor& listening) {
    return Descriptor(::accept4(listening.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

}  // namespace

Acceptor::Acceptor(Loop& loop, Descriptor listening, Events events)
    : loop_(loop),
      listening_(std::move(listening)),
      reserve_(spare_descriptor()),
      events_(std::move(events)),
      pause_(loop, [this] { resume(); }) {
    if (const int error = loop_.watch_shared(listening_.number(), *this))
        throw std::system_error(error, std::generic_category(), "cannot watch a listening socket");
}

Acceptor::~Acceptor() {
    loop_.forget(*this);
}

void Acceptor::ready(std::uint32_t) {
    for (int i = 0; i < k_accepts_per_turn; ++i) {
        Descriptor client = accept_on(listening_);
        const int error = errno;
        if (client.is_open()) {
            welcome(std::move(client));
        } else if (error == EMFILE || error == ENFILE) {
            shed_one();
        } else if (error == ENOBUFS || error == ENOMEM) {
            return pause();
        } else if (error == EAGAIN) {
            return;
        }  // else it is of that one connection: it was gone before it was taken (accept(2))
    }
}

void Acceptor::welcome(Descriptor client) {
    try {
        events_.connected(std::move(client));
    } catch (const std::bad_alloc&) {
        events_.shed("memory");
    }
}

void Acceptor::shed_one() {
    if (!reserve_.is_open()) return pause();
    reserve_.close();
    if (accept_on(listening_).is_open()) events_.shed("descriptors");
    reserve_ = spare_descriptor();
}

void Acceptor::pause() {
    loop_.unwatch(listening_.number());
    pause_.set(Clock::now() + k_pause);
}

void Acceptor::resume() {
    if (!reserve_.is_open()) reserve_ = spare_descriptor();
    if (loop_.watch_shared(listening_.number(), *this) != 0) pause();
}

}  // namespace noren::proxy::net
