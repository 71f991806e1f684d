#pragma once
// A non-blocking stream socket (TCP or Unix) that reads and writes at once or says why not, and wakes a
// coroutine when that changes. Reading goes into a buffer of the worker's, so an idle stream holds none.
// Once its TLS handshake is done it behaves the same, so that nobody above has to know.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <boost/asio/generic/stream_protocol.hpp>

#include "proxy/net/descriptor.hpp"
#include "proxy/net/tls_failure.hpp"
#include "proxy/net/tls_session.hpp"
#include "proxy/net/wakeup.hpp"

namespace noren::proxy::net {

/// An address of any family.
using SocketAddress = boost::asio::generic::stream_protocol::endpoint;

enum class IoStatus : unsigned char {
    ok,
    would_block,  ///< nothing now; the waker is told when there is
    closed,       ///< the peer has sent its last byte (FIN; in TLS its close_notify)
    broken,       ///< RST, in TLS also a bare FIN, or another error; nothing more goes through
};

struct IoResult {
    std::size_t bytes = 0;
    IoStatus status = IoStatus::ok;
    int error = 0;  ///< errno, with `broken`
};

/// Movable owner; closes on destruction. The worker's thread only.
class Socket {
  public:
    /// connected: non-blocking.
    Socket(Loop& loop, Descriptor connected);
    /// Starts connecting; connect_result() tells how that ended.
    Socket(Loop& loop, const SocketAddress& endpoint, const Waker& waker);
    ~Socket();
    Socket(Socket&&) noexcept;
    Socket& operator=(Socket&& other) noexcept;

    /// Who is woken; a pooled connection has none.
    void wake(const Waker& waker);
    void wake_nobody();

    /// Fetches the memory that the next call looks at.
    void prefetch() const noexcept;

    /// At most one read(2), or as many TLS records as fit. A short read means the socket is drained, which
    /// saves the call that would only say so.
    IoResult read(std::span<char> into);

    /// At most one send of the two parts together, or as many TLS records as the socket takes; may be
    /// partial. With TLS, the rest has to be the beginning of the next write.
    IoResult write(std::string_view first, std::string_view second = {});

    /// Empty while it still connects; 0 = connected, else errno.
    std::optional<int> connect_result() const;

    enum class Handshake : unsigned char { running, done, failed };

    /// Speaks TLS from now on, on a connected socket.
    void start_tls(const TlsContext& context);
    /// Moves the handshake on as far as it goes now; the waker is told when it can go on. Until it is done
    /// nothing is read or written.
    Handshake handshake();
    /// Back to plain bytes after a handshake that failed, for what is to be said to a peer without TLS.
    void end_tls();
    bool is_tls() const;
    /// Why the handshake failed, or what broke the connection since; none if it was not TLS.
    TlsFailure tls_failure() const;

    /// The next read and write go to the kernel, whatever epoll has said: before a peer is given up for its
    /// silence. What it did may not have been reported yet, and room for a part of what is to be written is
    /// not reported at all.
    void try_anyway();

    /// True if the peer has closed, or sent something nobody asked for, while the connection was idle. now:
    /// also what the loop has not been told of yet.
    bool disturbed(bool now);

    /// True if the peer has sent its last byte or reset, even behind bytes that nobody has read yet.
    bool peer_closed() const;
    /// True if the peer has reset the connection, perhaps after its last byte: no read tells of that then.
    bool was_reset() const;
    /// How much of what was written the peer's system has not acknowledged, in bytes. On a Unix socket 0 only
    /// if the peer has read all. Behind an orderly end: the peer closed without having had that.
    std::size_t unacknowledged() const;

    void shutdown_write();
    /// Closes so that the peer sees a reset: the only way to show that a body without a length was cut.
    void reset();
    void close();
    bool is_open() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace noren::proxy::net
