#include "proxy/net/listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/system/system_error.hpp>

namespace noren::proxy::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Large enough for a burst of new connections between two turns of the loop; the kernel cuts it to somaxconn.
constexpr int k_backlog = 4096;

[[noreturn]] void fail(int error, const std::string& what) {
    throw boost::system::system_error(error, boost::system::system_category(), what);
}

/// One bound, listening TCP socket, or -1 with errno.
int listen_on(const tcp::endpoint& endpoint) {
    const int fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    const int on = 1;
    const int off = 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (endpoint.address().is_v6()) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 &&
        ::listen(fd, k_backlog) == 0)
        return fd;
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
}

/// A socket file that nobody answers on is left over from a crash; one that answers is somebody's.
bool is_stale(const std::string& path) {
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const asio::local::stream_protocol::endpoint endpoint(path);
    const bool refused = ::connect(probe, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 &&
                         errno == ECONNREFUSED;
    ::close(probe);
    return refused;
}

}  // namespace

ListenerSet::ListenerSet(const config::Endpoint& address, std::size_t workers) {
    if (address.path.empty()) {
        open_tcp(address, workers);
    } else {
        open_unix(address.path, workers);
    }
}

ListenerSet::~ListenerSet() {
    for (const int fd : descriptors_)
        if (fd >= 0) ::close(fd);
    if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

void ListenerSet::open_tcp(const config::Endpoint& address, std::size_t workers) {
    const bool any = address.host.empty() || address.host == "::";
    tcp::endpoint endpoint(
        any ? asio::ip::address(asio::ip::address_v6::any()) : asio::ip::make_address(address.host),
        address.port);
    for (std::size_t i = 0; i < workers; ++i) {
        int fd = listen_on(endpoint);
        if (fd < 0 && any && i == 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
            endpoint.address(asio::ip::address_v4::any());  // a host without IPv6
            fd = listen_on(endpoint);
        }
        if (fd < 0) fail(errno, "cannot listen on " + address.host + ":" + std::to_string(address.port));
        descriptors_.push_back(fd);
        if (i == 0) {
            socklen_t size = static_cast<socklen_t>(endpoint.capacity());
            ::getsockname(fd, endpoint.data(), &size);
        }
    }
    port_ = endpoint.port();
    const std::string host = endpoint.address().to_string();
    name_ = (endpoint.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(port_);
}

void ListenerSet::open_unix(const std::string& path, std::size_t workers) {
    const asio::local::stream_protocol::endpoint endpoint(path);
    if (is_stale(path)) ::unlink(path.c_str());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) fail(errno, "cannot open a socket for " + path);
    descriptors_.push_back(fd);
    if (::bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0 ||
        ::listen(fd, k_backlog) != 0)
        fail(errno, "cannot listen on unix:" + path);
    unix_path_ = path;
    for (std::size_t i = 1; i < workers; ++i)
        descriptors_.push_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    name_ = "unix:" + path;
}

int ListenerSet::take(std::size_t worker) {
    return std::exchange(descriptors_.at(worker), -1);
}

}  // namespace noren::proxy::net
