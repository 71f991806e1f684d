#include "tests/support/peer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <sstream>
#include <stdexcept>

namespace test {
namespace {

constexpr std::chrono::seconds k_patience{20};

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

void set_patience(int fd) {
    const timeval patience{k_patience.count(), 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Peer Peer::connect(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("cannot connect");
    set_patience(fd);
    return Peer(fd);
}

Peer Peer::connect_from(const std::string& address, std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in here = loopback(0);
    const sockaddr_in there = loopback(port);
    ::inet_pton(AF_INET, address.c_str(), &here.sin_addr);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        ::connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
        throw std::runtime_error("cannot connect from " + address);
    set_patience(fd);
    return Peer(fd);
}

Peer Peer::connect_unix(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("cannot connect to " + path);
    set_patience(fd);
    return Peer(fd);
}

void Peer::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

std::string Peer::receive(std::size_t most) {
    std::string buffer(most, '\0');
    const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    was_reset_ |= n < 0 && errno == ECONNRESET;
    buffer.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return buffer;
}

bool Peer::is_silent_for(int milliseconds) const {
    pollfd look{fd_, POLLIN, 0};
    return ::poll(&look, 1, milliseconds) == 0;
}

void Peer::shutdown_write() {
    ::shutdown(fd_, SHUT_WR);
}

void Peer::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Peer::reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}

Listener::Listener(int backlog) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd_, backlog) != 0 || ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
    const timeval patience{k_patience.count(), 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

Listener::~Listener() {
    ::close(fd_);
}

Peer Listener::accept() {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) throw std::runtime_error("nobody connected");
    set_patience(fd);
    return Peer(fd);
}

bool Listener::is_called(int milliseconds) const {
    pollfd look{fd_, POLLIN, 0};
    return ::poll(&look, 1, milliseconds) == 1;
}

void Listener::fill_backlog() {
    // Non-blocking: the last ones stay half-open, which is the point.
    const sockaddr_in address = loopback(port_);
    for (int i = 0; i < 8; ++i) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
        fillers_.emplace_back(fd);
    }
}

ClosedPort::ClosedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
}

ClosedPort::~ClosedPort() {
    ::close(fd_);
}

std::string chunk(std::string_view data) {
    std::ostringstream framed;
    framed << std::hex << data.size() << "\r\n" << data << "\r\n";
    return framed.str();
}

std::string post_request(const std::string& target, const std::string& body,
                         const std::string& extra_fields) {
    return "POST " + target + " HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n" + extra_fields +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace test
