#pragma once
// The sockets clients connect to: one per worker on TCP (SO_REUSEPORT, the kernel spreads connections), one
// shared by all workers on a Unix path.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/address.hpp"

namespace noren::proxy::net {

/// Bound and listening descriptors, one per worker. Throws boost::system::system_error with the address in
/// its text. With port 0 the kernel chooses one, the same for all.
class ListenerSet {
  public:
    ListenerSet(const config::Endpoint& address, std::size_t workers);
    ~ListenerSet();
    ListenerSet(const ListenerSet&) = delete;
    ListenerSet& operator=(const ListenerSet&) = delete;

    /// The descriptor of one worker, who closes it; once each.
    int take(std::size_t worker);
    /// As bound: "0.0.0.0:8080", "[::]:8080", "unix:/run/x.sock".
    const std::string& name() const { return name_; }
    std::uint16_t port() const { return port_; }

  private:
    void open_tcp(const config::Endpoint& address, std::size_t workers);
    void open_unix(const std::string& path, std::size_t workers);

    std::vector<int> descriptors_;
    std::string name_;
    std::string unix_path_;
    std::uint16_t port_ = 0;
};

}  // namespace noren::proxy::net
