#include "proxy/net/reserve_descriptor.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace noren::proxy::net {
namespace {

Descriptor open_null() {
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

Descriptor copy_of(const Descriptor& descriptor) {
    return Descriptor(::fcntl(descriptor.number(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace

Descriptor accept_on(const Descriptor& listening) {
    return Descriptor(::accept4(listening.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

ReserveDescriptor::ReserveDescriptor() : null_(open_null()), spare_(copy_of(null_)) {
    missing_ = !spare_.is_open();
}

ReserveDescriptor::Shed ReserveDescriptor::shed_one(const Descriptor& listening) {
    const std::lock_guard lock(mutex_);
    if (!spare_.is_open()) spare_ = copy_of(null_);
    if (!spare_.is_open()) return Shed::impossible;
    missing_ = true;
    spare_.close();
    Descriptor client = accept_on(listening);
    const bool accepted = client.is_open();
    if (accepted) {
        refill_with(std::move(client));
    } else {
        spare_ = copy_of(null_);
        missing_ = !spare_.is_open();
    }
    if (accepted) return Shed::one;
    return missing_ ? Shed::impossible : Shed::nobody;
}

bool ReserveDescriptor::takes(Descriptor& client) {
    if (!missing_) return false;
    const std::lock_guard lock(mutex_);
    if (!spare_.is_open()) spare_ = copy_of(null_);  // there may be descriptors again
    missing_ = !spare_.is_open();
    if (!missing_) return false;
    refill_with(std::move(client));
    return true;
}

void ReserveDescriptor::refill_with(Descriptor client) {
    if (::dup3(null_.number(), client.number(), O_CLOEXEC) < 0) return;  // not with an open null_
    spare_ = std::move(client);
    missing_ = false;
}

}  // namespace noren::proxy::net
