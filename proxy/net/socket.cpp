#include "proxy/net/socket.hpp"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

#include "metrics/prefetch.hpp"

namespace noren::proxy::net {

struct Socket::State final : Watcher {
    State(Loop& l, Descriptor d) : loop(l), descriptor(std::move(d)) {}
    ~State() { close(); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    int number() const { return descriptor.number(); }

    void ready(std::uint32_t events) override;
    void end_writing();
    void close();

    Loop& loop;
    Descriptor descriptor;
    std::optional<Waker> waker;
    std::optional<int> connect_result;
    bool connecting = false;
    bool ending = false;  ///< the end of what we write could not be sent yet
    bool broken = false;  ///< epoll has told of an error
    Readiness readiness;
    std::unique_ptr<TlsSession> tls;  ///< null: plain
};

namespace {

IoResult failed(int error) {
    if (error == EAGAIN || error == EWOULDBLOCK) return {0, IoStatus::would_block, 0};
    return {0, IoStatus::broken, error};
}

/// A token is smaller than a segment: waiting to fill one would hold it back (RFC 1122 4.2.3.4). Without
/// effect on what is not TCP.
void send_at_once(int descriptor) {
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

ssize_t send_both(int descriptor, std::string_view first, std::string_view second) {
    std::array<iovec, 2> parts{iovec{const_cast<char*>(first.data()), first.size()},
                               iovec{const_cast<char*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    return ::sendmsg(descriptor, &message, MSG_NOSIGNAL);
}

int error_of(int descriptor) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

/// The errno tells that no error of TLS is the orderly end that EPIPE can be on a plain connection.
IoResult in_plain_words(const TlsSession::Result& result) {
    if (result.bytes > 0) return {result.bytes, IoStatus::ok, 0};
    switch (result.status) {
        case TlsSession::Status::ok:
            return {};
        case TlsSession::Status::wants_read:
        case TlsSession::Status::wants_write:
            return {0, IoStatus::would_block, 0};
        case TlsSession::Status::closed:
            return {0, IoStatus::closed, 0};
        case TlsSession::Status::broken:
            break;
    }
    return {0, IoStatus::broken, ECONNRESET};
}

}  // namespace

/// Wakes only if something is new: what is worth trying already will be tried.
void Socket::State::ready(std::uint32_t events) {
    const bool over = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    const bool can_read = over || (events & EPOLLIN) != 0;
    const bool can_write = (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0;
    bool news = std::exchange(connecting, false);
    if (news) connect_result = error_of(number());
    news |= can_read && !std::exchange(readiness.readable, readiness.readable || can_read);
    news |= can_write && !std::exchange(readiness.writable, readiness.writable || can_write);
    news |= over && !std::exchange(readiness.hung_up, readiness.hung_up || over);
    const bool error = (events & EPOLLERR) != 0;
    news |= error && !std::exchange(broken, true);
    if (ending) end_writing();
    if (news && waker) waker->notify();  // the last touch: the sleeper may end, and take this with it
}

void Socket::State::end_writing() {
    ending = tls && tls->close_notify() == TlsSession::Status::wants_write;
    if (!ending) ::shutdown(number(), SHUT_WR);
}

void Socket::State::close() {
    waker.reset();
    if (tls) tls->close_notify();  // if it goes at once; a peer that waits for more is told
    tls.reset();
    loop.forget(*this);
    descriptor.close();
}

Socket::Socket(Loop& loop, Descriptor connected)
    : state_(std::make_unique<State>(loop, std::move(connected))) {
    state_->connect_result = 0;
    send_at_once(state_->number());
    if (loop.watch(state_->number(), *state_) != 0) close();
}

Socket::Socket(Loop& loop, const SocketAddress& endpoint, const Waker& waker)
    : state_(std::make_unique<State>(
          loop, Descriptor(
                    ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)))) {
    if (!is_open()) {
        state_->connect_result = errno;
        return;
    }
    send_at_once(state_->number());
    state_->waker = waker;
    if (::connect(state_->number(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0) {
        state_->connect_result = 0;
    } else if (errno == EINPROGRESS) {
        state_->connecting = true;
    } else {
        state_->connect_result = errno;
        return;
    }
    if (const int error = loop.watch(state_->number(), *state_)) state_->connect_result = error;
}

Socket::~Socket() = default;
Socket::Socket(Socket&&) noexcept = default;
Socket& Socket::operator=(Socket&& other) noexcept = default;

void Socket::wake(const Waker& waker) {
    state_->waker = waker;
}
void Socket::wake_nobody() {
    state_->waker.reset();
}

void Socket::prefetch() const noexcept {
    metrics::prefetch(state_.get(), sizeof(State));
}

IoResult Socket::read(std::span<char> into) {
    if (state_->tls) return in_plain_words(state_->tls->read(into));
    Readiness& readiness = state_->readiness;
    if (!readiness.readable) return {0, IoStatus::would_block, 0};
    const ssize_t n = ::recv(state_->number(), into.data(), into.size(), 0);
    if (n == 0) return {0, IoStatus::closed, 0};
    const auto bytes = n > 0 ? static_cast<std::size_t>(n) : 0;
    const IoResult result = n > 0 ? IoResult{bytes, IoStatus::ok, 0} : failed(errno);
    // A hang-up that epoll has told of already will not be told of again.
    if (result.status == IoStatus::would_block || (bytes < into.size() && !readiness.hung_up))
        readiness.readable = false;
    return result;
}

IoResult Socket::write(std::string_view first, std::string_view second) {
    if (state_->tls) return in_plain_words(state_->tls->write(first, second));
    if (!state_->readiness.writable) return {0, IoStatus::would_block, 0};
    const ssize_t n = second.empty() ? ::send(state_->number(), first.data(), first.size(), MSG_NOSIGNAL)
                                     : send_both(state_->number(), first, second);
    const auto bytes = n >= 0 ? static_cast<std::size_t>(n) : 0;
    const IoResult result = n >= 0 ? IoResult{bytes, IoStatus::ok, 0} : failed(errno);
    if (result.status != IoStatus::broken && bytes < first.size() + second.size())
        state_->readiness.writable = false;
    return result;
}

std::optional<int> Socket::connect_result() const {
    return state_->connect_result;
}

void Socket::start_tls(const TlsContext& context) {
    state_->tls = std::make_unique<TlsSession>(context, state_->number(), state_->readiness);
}

void Socket::end_tls() {
    state_->tls.reset();
}

bool Socket::is_tls() const {
    return state_->tls != nullptr;
}

TlsFailure Socket::tls_failure() const {
    return state_->tls ? state_->tls->failure() : TlsFailure{};
}

Socket::Handshake Socket::handshake() {
    const TlsSession::Status status = state_->tls->handshake();
    if (status == TlsSession::Status::ok) return Handshake::done;
    return status == TlsSession::Status::broken ? Handshake::failed : Handshake::running;
}

void Socket::try_anyway() {
    state_->readiness.readable = state_->readiness.writable = true;
}

bool Socket::disturbed(bool now) {
    if (!now && !state_->readiness.readable) return false;
    if (state_->tls) return state_->tls->disturbed();
    char byte = 0;
    const ssize_t n = ::recv(state_->number(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

bool Socket::peer_closed() const {
    return state_->readiness.hung_up;
}

bool Socket::was_reset() const {
    return state_->broken;
}

std::size_t Socket::unacknowledged() const {
    int bytes = 0;
    return ::ioctl(state_->number(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

void Socket::shutdown_write() {
    state_->end_writing();
}

void Socket::reset() {
    end_tls();  // without its own end, which would be a clean one
    const linger at_once{1, 0};
    ::setsockopt(state_->number(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close();
}

void Socket::close() {
    state_->close();
}

bool Socket::is_open() const {
    return state_ && state_->descriptor.is_open();
}

}  // namespace noren::proxy::net
