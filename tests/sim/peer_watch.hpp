#pragma once
// Notices a client that leaves, at once and in any phase: a read is pending while the answer is made.

#include <functional>

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "tests/sim/sleeper.hpp"

namespace sim {

/// Whether the other side has closed (or half-closed, see below), whatever of its bytes is still unread.
bool has_left(net::ip::tcp::socket& socket);

/// Between start() and the end of stop() the buffer belongs to the watch: what the client sends early (its
/// next request) is kept there for the next read. A half-closed connection counts as left, as it does for
/// the Python servers that engines are behind.
class PeerWatch {
  public:
    PeerWatch(net::ip::tcp::socket& socket, boost::beast::flat_buffer& buffer)
        : socket_(socket), buffer_(buffer), ended_(socket.get_executor()) {}

    /// `on_gone` is called at most once, on the socket's thread.
    void start(std::function<void()> on_gone);

    /// Must be awaited after start() before the watch, socket or buffer may go.
    net::awaitable<void> stop();

  private:
    void read();
    void on_read(boost::system::error_code error, std::size_t bytes);

    static constexpr std::size_t k_read_ahead = 64 * 1024;

    net::ip::tcp::socket& socket_;
    boost::beast::flat_buffer& buffer_;
    std::function<void()> on_gone_;
    Sleeper ended_;
    bool reading_ = false;
    bool stopping_ = false;
};

}  // namespace sim
