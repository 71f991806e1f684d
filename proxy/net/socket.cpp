#include "proxy/net/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace noren::proxy::net {

struct Socket::State {
    explicit State(Native s) : socket(std::move(s)) {}

    void notify() const {
        if (waker) waker->notify();
    }

    Native socket;
    std::optional<Waker> waker;
    std::optional<int> connect_result;
    bool readable = true;  ///< worth trying
    bool writable = true;
    bool awaiting_readable = false;
    bool awaiting_writable = false;
};

namespace {

IoResult failed(int error) {
    if (error == EAGAIN || error == EWOULDBLOCK) return {0, IoStatus::would_block, 0};
    return {0, IoStatus::broken, error};
}

void set_up(Native& socket) {
    boost::system::error_code ignored;
    socket.native_non_blocking(true, ignored);
    const int family = socket.local_endpoint(ignored).protocol().family();
    if (family != AF_INET && family != AF_INET6) return;
    // A token is smaller than a segment: waiting to fill one would hold it back (RFC 1122 4.2.3.4).
    const int on = 1;
    ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Socket::Socket(Native socket) : state_(std::make_shared<State>(std::move(socket))) {
    if (state_->socket.is_open()) set_up(state_->socket);
}

Socket::~Socket() {
    if (state_) close();
}

Socket& Socket::operator=(Socket&& other) noexcept {
    if (state_) close();
    state_ = std::move(other.state_);
    return *this;
}

void Socket::wake(const Waker& waker) {
    state_->waker = waker;
}
void Socket::wake_nobody() {
    state_->waker.reset();
}

void Socket::await_readable() {
    if (std::exchange(state_->awaiting_readable, true)) return;
    state_->socket.async_wait(Native::wait_read, [state = state_](const boost::system::error_code& error) {
        state->awaiting_readable = false;
        if (error) return;  // closed by us
        state->readable = true;
        state->notify();
    });
}

void Socket::await_writable() {
    if (std::exchange(state_->awaiting_writable, true)) return;
    state_->socket.async_wait(Native::wait_write, [state = state_](const boost::system::error_code& error) {
        state->awaiting_writable = false;
        if (error) return;
        state->writable = true;
        state->notify();
    });
}

IoResult Socket::read(std::span<char> into) {
    if (!state_->readable) {
        await_readable();
        return {0, IoStatus::would_block, 0};
    }
    const ssize_t n = ::recv(state_->socket.native_handle(), into.data(), into.size(), 0);
    if (n == 0) return {0, IoStatus::closed, 0};
    const auto bytes = n > 0 ? static_cast<std::size_t>(n) : 0;
    const IoResult result = n > 0 ? IoResult{bytes, IoStatus::ok, 0} : failed(errno);
    if (result.status == IoStatus::would_block || bytes < into.size()) state_->readable = false;
    if (result.status == IoStatus::would_block) await_readable();
    return result;
}

IoResult Socket::write(std::string_view first, std::string_view second) {
    if (!state_->writable) {
        await_writable();
        return {0, IoStatus::would_block, 0};
    }
    std::array<iovec, 2> parts{iovec{const_cast<char*>(first.data()), first.size()},
                               iovec{const_cast<char*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = second.empty() ? 1 : 2;
    const ssize_t n = ::sendmsg(state_->socket.native_handle(), &message, MSG_NOSIGNAL);
    const auto bytes = n >= 0 ? static_cast<std::size_t>(n) : 0;
    const IoResult result = n >= 0 ? IoResult{bytes, IoStatus::ok, 0} : failed(errno);
    if (result.status != IoStatus::broken && bytes < first.size() + second.size()) {
        state_->writable = false;
        await_writable();
    }
    return result;
}

void Socket::connect(const Endpoint& endpoint) {
    boost::system::error_code error;
    if (!state_->socket.is_open()) state_->socket.open(endpoint.protocol(), error);
    if (error) {
        state_->connect_result = error.value();
        return;
    }
    state_->connect_result.reset();
    state_->socket.async_connect(endpoint, [state = state_](const boost::system::error_code& outcome) {
        if (outcome == asio::error::operation_aborted) return;
        if (!outcome) set_up(state->socket);
        state->connect_result = outcome.value();
        state->notify();
    });
}

std::optional<int> Socket::connect_result() const {
    return state_->connect_result;
}

bool Socket::disturbed() {
    char byte = 0;
    const ssize_t n = ::recv(state_->socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

bool Socket::peer_closed() const {
    pollfd look{state_->socket.native_handle(), POLLRDHUP, 0};
    return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void Socket::shutdown_write() {
    boost::system::error_code ignored;
    state_->socket.shutdown(Native::shutdown_send, ignored);
}

void Socket::reset() {
    boost::system::error_code ignored;
    state_->socket.set_option(asio::socket_base::linger(true, 0), ignored);
    close();
}

void Socket::close() {
    boost::system::error_code ignored;
    state_->waker.reset();
    state_->socket.close(ignored);
}

bool Socket::is_open() const {
    return state_ && state_->socket.is_open();
}

}  // namespace noren::proxy::net
