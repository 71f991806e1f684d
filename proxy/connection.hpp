#pragma once
// One client connection: request after request, until either side wants no more.

#include <memory>
#include <string>
#include <variant>

#include "proxy/admission/connection_quota.hpp"
#include "proxy/failure.hpp"
#include "proxy/net/outbox.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/task.hpp"
#include "proxy/net/wakeup.hpp"

namespace noren::proxy {

class Worker;

/// The client's side of an exchange.
struct Downstream {
    Downstream(net::Loop& loop, net::Descriptor client)
        : wakeup(loop), socket(loop, std::move(client)), out(socket) {
        socket.wake(wakeup.waker());
    }

    net::Wakeup wakeup;  ///< of the connection's coroutine; everything it deals with wakes this
    net::Socket socket;
    net::Outbox out;
    std::string in;  ///< received, not yet used: the rest of a body, or requests sent ahead
};

/// Lives in the frame of the coroutine that serves it; the worker knows it so that a stop can wake it.
class Connection {
  public:
    Connection(Worker& worker, net::Descriptor client, admission::ConnectionQuota::Place place);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    net::Task<> serve();
    const net::Waker& waker() const { return down_.wakeup.waker(); }

  private:
    struct Closed {};  ///< nothing to say to the client: it is gone, or idle for too long
    using HeadText = std::variant<std::string, Failure, Closed>;

    net::Task<bool> shake_hands();
    net::Task<HeadText> read_head(bool first);
    net::Task<bool> serve_one(std::string text);
    void refuse(const Failure& failure);
    net::Task<> linger();

    Worker& worker_;
    const admission::ConnectionQuota::Place place_;
    Downstream down_;
};

}  // namespace noren::proxy
