#pragma once
// Host names to addresses, without holding a worker up: getaddrinfo(3) blocks, so it runs on a thread of its
// own, through Asio's resolver.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "proxy/net/loop.hpp"
#include "proxy/net/socket.hpp"

namespace noren::proxy::upstream {

/// Thread-safe. Outlives the loops that ask it.
class Resolver {
  public:
    /// io: of a thread that may be kept waiting a little, the ops thread.
    explicit Resolver(boost::asio::io_context& io) : io_(io) {}

    using Found = std::function<void(const std::vector<net::SocketAddress>& addresses)>;

    /// found is called on the loop's thread, in any case, later: with the addresses in the system's order,
    /// none if there are none.
    void resolve(const std::string& host, std::uint16_t port, net::Loop& loop, Found found);

  private:
    boost::asio::io_context& io_;
};

}  // namespace noren::proxy::upstream
