#pragma once
// Opening a connection to the engine: resolve the name if it is one, try its addresses in turn, shake hands
// if it is TLS. An address that does not answer holds nobody up for long: the next one is tried beside it
// (RFC 8305).

#include <memory>
#include <optional>
#include <vector>

#include "config/address.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/task.hpp"
#include "proxy/upstream/resolver.hpp"

namespace noren::proxy::upstream {

/// What a dial ended with: nobody listens there. Not that packets are lost, nor that the backlog is full.
bool is_refusal(int error);
/// ... noren itself lacks what a connection takes: descriptors or memory. It says nothing of the engine.
bool is_shortage(int error);

/// One attempt. Start it, sleep, look at it again whenever woken, and at due(). Dropping it abandons the
/// attempt.
class Dial {
  public:
    /// tls: null = plain.
    Dial(net::Loop& loop, Resolver& resolver, const config::Address& target,
         std::shared_ptr<const net::TlsContext> tls, const net::Waker& waker);

    /// Moves on; empty while it still runs, then an errno-like code, 0 = connected.
    std::optional<int> poll();
    /// While it runs: when to look at it again, if nothing wakes before.
    net::TimePoint due() const { return untried_.empty() ? net::k_never : next_at_; }

    /// Why it was, after poll() ended otherwise: which check of TLS did not pass; none = it was not TLS.
    net::TlsFailure tls_failure() const;

    /// After poll() ended otherwise: whether it was because the host has no address.
    bool is_unresolved() const { return unresolved_; }

    /// The connected socket, after poll() said 0.
    net::Socket take();

  private:
    struct Lookup {
        bool done = false;
        std::vector<net::SocketAddress> found;
    };
    void try_next();
    void look_at_attempts();
    std::optional<int> shake_hands();

    net::Loop& loop_;
    const std::shared_ptr<const net::TlsContext> tls_;
    net::Waker waker_;
    std::shared_ptr<Lookup> lookup_;  ///< shared with the resolver's answer, which may come too late
    bool unresolved_ = false;
    std::vector<net::SocketAddress> untried_;
    net::TimePoint next_at_ = net::k_never;  ///< then the next one is tried, whatever those before do
    std::vector<net::Socket> attempts_;      ///< under way
    int last_error_ = 0;
    std::optional<net::Socket> socket_;  ///< the first to be connected
};

/// How a dial ended that somebody waited for.
struct Dialled {
    std::optional<net::Socket> socket;  ///< connected; otherwise one of the rest says why not
    bool late = false;                  ///< the deadline came first
    bool unresolved = false;            ///< the host has no address
    net::TlsFailure tls;                ///< which check of TLS did not pass
    int error = 0;                      ///< else, errno-like
};

/// For who does nothing else meanwhile: dials, and sleeps on wakeup. The arguments outlive the task.
net::Task<Dialled> dial(net::Loop& loop, Resolver& resolver, const config::Address& target,
                        const std::shared_ptr<const net::TlsContext>& tls, net::Wakeup& wakeup,
                        net::TimePoint deadline);

}  // namespace noren::proxy::upstream
