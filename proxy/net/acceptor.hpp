#pragma once
// Takes new connections from one listening descriptor.

#include <functional>

#include "proxy/net/loop.hpp"

namespace noren::proxy::net {

/// The loop's thread only. Closes the descriptor with itself.
///
/// With no descriptor left, connections would wait in the backlog for as long as that lasts, and their
/// clients with them. One descriptor is therefore kept in reserve: it is given up to accept such a connection
/// and close it at once, so that its client knows.
class Acceptor final : private Watcher {
  public:
    struct Events {
        std::function<void(int descriptor)> connected;  ///< non-blocking; the callee's from then on
        std::function<void()> shed;                     ///< one was closed for want of descriptors
    };

    /// Throws std::system_error if the descriptor cannot be watched.
    Acceptor(Loop& loop, int descriptor, Events events);
    ~Acceptor();
    Acceptor(const Acceptor&) = delete;
    Acceptor& operator=(const Acceptor&) = delete;

  private:
    void ready(std::uint32_t events) override;
    void shed_one();
    void pause();
    void resume();

    Loop& loop_;
    const int descriptor_;
    int reserve_;
    const Events events_;
    Timer pause_;
};

}  // namespace noren::proxy::net
