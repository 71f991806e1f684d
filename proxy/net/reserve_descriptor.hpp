#pragma once
// One descriptor of the process that is kept back for the time when there is no other.

#include <atomic>
#include <mutex>

#include "proxy/net/descriptor.hpp"

namespace noren::proxy::net {

/// With no descriptor left, connections would wait in the backlog for as long as that lasts, and their
/// clients with them. The reserve is given up to accept such a connection, which is closed at once by
/// becoming the reserve, so that its client knows.
///
/// Thread-safe: descriptors belong to the process, so one reserve serves all acceptors. In the moment in
/// which it is given up another thread may get it; if that was to accept a connection, this one becomes the
/// reserve.
class ReserveDescriptor {
  public:
    ReserveDescriptor();
    ReserveDescriptor(const ReserveDescriptor&) = delete;
    ReserveDescriptor& operator=(const ReserveDescriptor&) = delete;

    enum class Shed : unsigned char {
        one,        ///< a connection was accepted and closed
        nobody,     ///< none waits any more
        impossible  ///< somebody else has the descriptor
    };
    /// After an accept that failed for want of a descriptor.
    Shed shed_one(const Descriptor& listening);

    /// After one that did not. True: the reserve was missing, there is no other descriptor for it, and this
    /// connection was closed to be it.
    bool takes(Descriptor& client);

  private:
    void refill_with(Descriptor client);

    const Descriptor null_;  ///< what a reserve is a copy of: with dup3 there is no moment without it
    std::mutex mutex_;
    Descriptor spare_;
    std::atomic<bool> missing_{false};
};

/// The next connection that waits: non-blocking, or not open, with errno.
Descriptor accept_on(const Descriptor& listening);

}  // namespace noren::proxy::net
