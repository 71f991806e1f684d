#pragma once
// The sockets clients connect to: one per worker on TCP (SO_REUSEPORT, the kernel spreads connections), one
// shared by all workers on a Unix path.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/address.hpp"
#include "proxy/net/descriptor.hpp"
#include "proxy/net/socket_file.hpp"

namespace noren::proxy::net {

/// Bound and listening descriptors, one per worker. The host of address is a literal one, or empty. A Unix
/// socket left over from a crash is replaced; a living process's never, nor a file that is no socket; a TCP
/// address that another process listens on is refused, though it were another noren. Throws
/// boost::system::system_error with the address in its text. With port 0 the kernel chooses one, the same for
/// all.
class ListenerSet {
  public:
    /// mode: of the file, if it is a Unix path.
    ListenerSet(const config::Address& address, std::size_t workers, unsigned mode = 0660);
    ListenerSet(const ListenerSet&) = delete;
    ListenerSet& operator=(const ListenerSet&) = delete;

    /// The descriptor of one worker; once each.
    Descriptor take(std::size_t worker);
    /// As bound: "0.0.0.0:8080", "[::]:8080", "unix:/run/x.sock".
    const std::string& name() const { return name_; }
    std::uint16_t port() const { return port_; }

  private:
    void open_tcp(const config::Address& address, std::size_t workers);
    void open_unix(const std::string& path, std::size_t workers, unsigned mode);

    std::vector<Descriptor> descriptors_;
    std::string name_;
    std::optional<SocketFile> unix_file_;
    std::uint16_t port_ = 0;
};

}  // namespace noren::proxy::net
