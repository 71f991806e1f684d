#include "proxy/net/acceptor.hpp"

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

}  // namespace

Acceptor::Acceptor(Loop& loop, Descriptor listening, ReserveDescriptor& reserve, Events events)
    : loop_(loop),
      listening_(std::move(listening)),
      reserve_(reserve),
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
            reserve_.takes(client) ? events_.shed("descriptors") : welcome(std::move(client));
        } else if (error == EMFILE || error == ENFILE) {
            const ReserveDescriptor::Shed shed = reserve_.shed_one(listening_);
            if (shed == ReserveDescriptor::Shed::one) events_.shed("descriptors");
            if (shed == ReserveDescriptor::Shed::impossible) return pause();
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

void Acceptor::pause() {
    loop_.unwatch(listening_.number());
    pause_.set(Clock::now() + k_pause);
}

void Acceptor::resume() {
    if (loop_.watch_shared(listening_.number(), *this) != 0) pause();
}

}  // namespace noren::proxy::net
