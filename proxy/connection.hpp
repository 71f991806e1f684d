#pragma once
// One client connection: request after request, until either side wants no more.

#include <string>

#include <boost/asio/awaitable.hpp>

#include "proxy/net/outbox.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/wakeup.hpp"

namespace noren::proxy {

class Worker;

/// The client's side of an exchange.
struct Downstream {
    Downstream(asio::io_context& io, net::Socket s) : wakeup(io), socket(std::move(s)), out(socket) {
        socket.wake(wakeup.waker());
    }

    net::Wakeup wakeup;  ///< of the connection's coroutine; everything it deals with wakes this
    net::Socket socket;
    net::Outbox out;
    std::string in;  ///< received, not yet used: the rest of a body, or requests sent ahead
};

/// Lives in the frame of its own serve(); the worker knows it so that a stop can wake it.
class Connection {
  public:
    Connection(Worker& worker, net::Socket socket);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    asio::awaitable<void> serve();
    const net::Waker& waker() const { return down_.wakeup.waker(); }

  private:
    /// The next request's head in `head_`; false: the connection is over (an answer saying so may be out).
    asio::awaitable<bool> read_head(bool first);
    asio::awaitable<void> linger();

    Worker& worker_;
    Downstream down_;
    std::string head_;
};

}  // namespace noren::proxy
