#pragma once
// Bytes on their way into a socket: written at once where the socket takes them, kept in order where it does
// not.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/net/socket.hpp"

namespace noren::proxy::net {

/// Does not own the socket. Who fills it bounds it: look at waiting() before producing more.
class Outbox {
  public:
    explicit Outbox(Socket& socket) : socket_(&socket) {}

    /// Writes what the socket takes now and keeps a copy of the rest. The two parts go out in one call, so
    /// that a head and its first body bytes share a segment. False: the socket is broken, nothing more goes
    /// out.
    bool send(std::string_view first, std::string_view second = {});

    /// Likewise, but the rest of `second` is not copied: it stays where it is until all is written, or the
    /// outbox goes, or something else is sent.
    bool lend(std::string_view first, std::string_view second);

    /// Writes more of what is kept. False: broken.
    bool flush();

    std::size_t waiting() const { return kept_.size() - begin_ + lent_.size(); }
    bool empty() const { return waiting() == 0; }
    bool broken() const { return broken_; }
    /// Bytes handed to the kernel so far: has the peer taken anything since I last looked?
    std::uint64_t written() const { return written_; }

  private:
    bool accept(const IoResult& result);

    Socket* socket_;
    std::string kept_;
    std::size_t begin_ = 0;  ///< of kept_ not yet written
    std::string_view lent_;  ///< behind kept_
    std::uint64_t written_ = 0;
    bool broken_ = false;
};

}  // namespace noren::proxy::net
