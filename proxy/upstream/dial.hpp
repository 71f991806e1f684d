#pragma once
// Opening a connection to the engine: resolve the name if it is one, then try its addresses in turn.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/address.hpp"
#include "proxy/net/socket.hpp"

namespace noren::proxy::upstream {

namespace asio = boost::asio;

/// One attempt. Start it, sleep, look at it again whenever woken. Dropping it abandons the attempt.
class Dial {
  public:
    Dial(asio::io_context& io, const config::Endpoint& target, const net::Waker& waker);
    ~Dial();

    /// Moves on; empty while it still runs, then an errno-like code, 0 = connected.
    std::optional<int> poll();

    /// The connected socket, after poll() said 0.
    net::Socket take();

  private:
    struct Lookup;
    void try_next();

    asio::io_context& io_;
    net::Waker waker_;
    std::shared_ptr<Lookup> lookup_;  ///< shared with the resolver's handler, which may come too late
    std::vector<net::Endpoint> untried_;
    std::optional<net::Socket> socket_;
    int last_error_ = 0;
};

}  // namespace noren::proxy::upstream
