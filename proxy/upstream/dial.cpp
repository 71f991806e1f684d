#include "proxy/upstream/dial.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace noren::proxy::upstream {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {
// Of an address over the one behind it (RFC 8305 5).
constexpr std::chrono::milliseconds k_head_start{250};
}  // namespace

bool is_refusal(int error) {
    return error == ECONNREFUSED || error == ENOENT;  // no socket at the Unix path, or a dead one's
}

bool is_shortage(int error) {
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
           error == ENOSPC;  // of epoll_ctl(2)
}

Dial::Dial(net::Loop& loop, Resolver& resolver, const config::Address& target,
           std::shared_ptr<const net::TlsContext> tls, const net::Waker& waker)
    : loop_(loop), tls_(std::move(tls)), waker_(waker) {
    if (target.is_unix()) {
        // A path too long for sockaddr_un is refused by the config already; here it would throw.
        untried_.emplace_back(asio::local::stream_protocol::endpoint(target.path));
        try_next();
        return;
    }
    boost::system::error_code not_literal;
    const auto address = asio::ip::make_address(target.host, not_literal);
    if (!not_literal) {
        untried_.emplace_back(tcp::endpoint(address, target.port));
        try_next();
        return;
    }
    lookup_ = std::make_shared<Lookup>();
    resolver.resolve(target.host, target.port, loop,
                     [lookup = lookup_, waker](const std::vector<net::SocketAddress>& addresses) {
                         lookup->done = true;
                         lookup->found = addresses;
                         waker.post();
                     });
}

void Dial::try_next() {
    attempts_.emplace_back(loop_, untried_.front(), waker_);
    untried_.erase(untried_.begin());
    next_at_ = net::Clock::now() + k_head_start;
}

/// The first to be connected stays, those that failed go.
void Dial::look_at_attempts() {
    for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
        const std::optional<int> result = attempt->connect_result();
        if (result == 0) {
            socket_.emplace(std::move(*attempt));
            attempts_.clear();
            untried_.clear();
            return;
        }
        if (result) last_error_ = *result;
        attempt = result ? attempts_.erase(attempt) : attempt + 1;
    }
}

std::optional<int> Dial::poll() {
    if (lookup_ && lookup_->done) {
        untried_ = std::move(lookup_->found);
        lookup_.reset();
        unresolved_ = untried_.empty();
        if (unresolved_) return EHOSTUNREACH;
    }
    if (lookup_) return std::nullopt;
    for (;;) {
        if (!socket_) look_at_attempts();
        if (socket_) return tls_ ? shake_hands() : 0;
        if (untried_.empty()) return attempts_.empty() ? std::optional(last_error_) : std::nullopt;
        if (!attempts_.empty() && net::Clock::now() < next_at_) return std::nullopt;
        try_next();
    }
}

/// One that fails ends the attempt: the other addresses are the same engine's.
std::optional<int> Dial::shake_hands() {
    if (!socket_->is_tls()) socket_->start_tls(*tls_);
    switch (socket_->handshake()) {
        case net::Socket::Handshake::running:
            return std::nullopt;
        case net::Socket::Handshake::done:
            return 0;
        case net::Socket::Handshake::failed:
            break;
    }
    return EPROTO;
}

net::TlsFailure Dial::tls_failure() const {
    return socket_ ? socket_->tls_failure() : net::TlsFailure{};
}

net::Socket Dial::take() {
    return std::move(*socket_);
}

net::Task<Dialled> dial(net::Loop& loop, Resolver& resolver, const config::Address& target,
                        const std::shared_ptr<const net::TlsContext>& tls, net::Wakeup& wakeup,
                        net::TimePoint deadline) {
    Dial attempt(loop, resolver, target, tls, wakeup.waker());
    Dialled end;
    std::optional<int> outcome;
    while (!(outcome = attempt.poll())) {
        end.late = net::Clock::now() >= deadline;
        if (end.late) co_return end;
        const net::TimePoint until = std::min(deadline, attempt.due());
        co_await wakeup.wait(until);
    }
    if (*outcome == 0) {
        end.socket.emplace(attempt.take());
    } else {
        end.error = *outcome;
        end.tls = attempt.tls_failure();
        end.unresolved = attempt.is_unresolved();
    }
    co_return end;
}

}  // namespace noren::proxy::upstream
