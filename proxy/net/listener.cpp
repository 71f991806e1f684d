#include "proxy/net/listener.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
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

/// One bound, listening TCP socket, or -1 with errno. The first is bound for itself, and only then lets
/// others in: the kernel would let another process's first one in as well, and share its clients out between
/// the two.
int listen_on(const tcp::endpoint& endpoint, bool first) {
    const int fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    const int on = 1;
    const int off = 0;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!first) ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (endpoint.address().is_v6()) ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    // The first one admits others only once it listens: until then another set may have bound as well, and
    // its listen() has to fail.
    if (::bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 &&
        ::listen(fd, k_backlog) == 0 && ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0)
        return fd;
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
}

}  // namespace

ListenerSet::ListenerSet(const config::Address& address, std::size_t workers, unsigned mode) {
    if (address.path.empty()) {
        open_tcp(address, workers);
    } else {
        open_unix(address.path, workers, mode);
    }
}

void ListenerSet::open_tcp(const config::Address& address, std::size_t workers) {
    const auto cannot = [&address](int error) { fail(error, "cannot listen on " + to_string(address)); };
    const bool any = address.host.empty() || address.host == "::";
    boost::system::error_code no_address;
    tcp::endpoint endpoint(any ? asio::ip::address(asio::ip::address_v6::any())
                               : asio::ip::make_address(address.host, no_address),
                           address.port);
    if (no_address) cannot(no_address.value());
    for (std::size_t i = 0; i < workers; ++i) {
        int fd = listen_on(endpoint, i == 0);
        if (fd < 0 && any && i == 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
            endpoint.address(asio::ip::address_v4::any());  // a host without IPv6
            fd = listen_on(endpoint, true);
        }
        if (fd < 0) cannot(errno);
        descriptors_.emplace_back(fd);
        if (i == 0) {
            socklen_t size = static_cast<socklen_t>(endpoint.capacity());
            ::getsockname(fd, endpoint.data(), &size);
        }
    }
    port_ = endpoint.port();
    name_ = config::to_string({endpoint.address().to_string(), port_, {}});
}

void ListenerSet::open_unix(const std::string& path, std::size_t workers, unsigned mode) {
    const std::string cannot = "cannot listen on unix:" + path;
    unix_file_.emplace(path, mode, k_backlog, cannot);
    descriptors_.push_back(unix_file_->take());
    for (std::size_t i = 1; i < workers; ++i) {
        Descriptor shared(::fcntl(descriptors_.front().number(), F_DUPFD_CLOEXEC, 0));
        if (!shared.is_open()) fail(errno, cannot);
        descriptors_.push_back(std::move(shared));
    }
    name_ = "unix:" + path;
}

Descriptor ListenerSet::take(std::size_t worker) {
    return std::move(descriptors_.at(worker));
}

}  // namespace noren::proxy::net
