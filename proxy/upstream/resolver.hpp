#pragma once
// Host names to addresses, without holding a worker up: getaddrinfo(3) blocks, so it runs on a thread of its
// own, through Asio's resolver. That is one thread, so who asks for what is being looked up joins in: a name
// server that takes seconds holds each dial up once, not once for every dial before it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "proxy/net/loop.hpp"
#include "proxy/net/socket.hpp"

namespace noren::proxy::upstream {

/// Thread-safe. Outlives the loops that ask it.
class Resolver {
  public:
    using Addresses = std::vector<net::SocketAddress>;
    using Found = std::function<void(const Addresses& addresses)>;

    /// io: of a thread that may be kept waiting a little, the ops thread. It runs nothing of this any more
    /// when this goes.
    explicit Resolver(boost::asio::io_context& io);
    virtual ~Resolver();
    Resolver(const Resolver&) = delete;
    Resolver& operator=(const Resolver&) = delete;

    /// found is called on the loop's thread, in any case, later: with the addresses in the system's order,
    /// none if there are none.
    void resolve(const std::string& host, std::uint16_t port, net::Loop& loop, Found found);

  protected:
    /// On io's thread; so is found, later.
    virtual void look_up(const std::string& host, std::uint16_t port, Found found);

  private:
    struct Lookups;

    boost::asio::io_context& io_;
    const std::shared_ptr<Lookups> lookups_;
};

}  // namespace noren::proxy::upstream
