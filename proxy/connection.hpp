#pragma once
// One client connection: request after request, until either side wants no more.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

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

    /// What the client has sent and nobody has used yet: what was kept, else what one read gives. Valid until
    /// the next read of the worker. Empty with status ok: nothing for now.
    struct Received {
        net::IoStatus status = net::IoStatus::ok;
        std::string_view bytes;
    };
    Received receive(std::span<char> scratch);
    /// So much of what receive() gave is used; the rest is kept.
    void used(std::string_view received, std::size_t size);

    /// The first bytes of `in` are used. Once it is empty it takes no memory: most streams never need it
    /// again.
    void take_in(std::size_t used) {
        if (used == in.size()) {
            std::string().swap(in);
        } else {
            in.erase(0, used);
        }
    }
};

/// Lives in the frame of the coroutine that serves it; the worker knows it so that a stop can wake it.
class Connection {
  public:
    Connection(Worker& worker, net::Descriptor client);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    net::Task<> serve();
    const net::Waker& waker() const { return down_.wakeup.waker(); }

  private:
    struct Closed {};  ///< nothing to say to the client: it is gone, or idle for too long
    using HeadText = std::variant<std::string, Failure, Closed>;

    net::Task<bool> shake_hands();
    net::Task<bool> send_rest();
    net::Task<HeadText> read_head(bool first);
    net::Task<bool> serve_one(std::string text);
    void refuse(const Failure& failure, std::string_view head = {});
    net::Task<> linger();

    Worker& worker_;
    Downstream down_;
};

}  // namespace noren::proxy
