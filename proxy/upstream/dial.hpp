#pragma once
// Opening a connection to the engine: resolve the name if it is one, then try its addresses in turn.

#include <memory>
#include <optional>
#include <vector>

#include "config/address.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/upstream/resolver.hpp"

namespace noren::proxy::upstream {

/// One attempt. Start it, sleep, look at it again whenever woken. Dropping it abandons the attempt.
class Dial {
  public:
    Dial(net::Loop& loop, Resolver& resolver, const config::Endpoint& target, const net::Waker& waker);

    /// Moves on; empty while it still runs, then an errno-like code, 0 = connected.
    std::optional<int> poll();

    /// The connected socket, after poll() said 0.
    net::Socket take();

  private:
    struct Lookup {
        bool done = false;
        std::vector<net::Endpoint> found;
    };
    void try_next();

    net::Loop& loop_;
    net::Waker waker_;
    std::shared_ptr<Lookup> lookup_;  ///< shared with the resolver's answer, which may come too late
    std::vector<net::Endpoint> untried_;
    std::optional<net::Socket> socket_;
};

}  // namespace noren::proxy::upstream
