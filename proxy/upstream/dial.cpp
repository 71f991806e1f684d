#include "proxy/upstream/dial.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>

namespace noren::proxy::upstream {

using asio::ip::tcp;

struct Dial::Lookup {
    explicit Lookup(asio::io_context& io) : resolver(io) {}
    tcp::resolver resolver;
    bool done = false;
    std::vector<net::Endpoint> found;
};

Dial::Dial(asio::io_context& io, const config::Endpoint& target, const net::Waker& waker)
    : io_(io), waker_(waker) {
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
    lookup_ = std::make_shared<Lookup>(io);
    lookup_->resolver.async_resolve(target.host, std::to_string(target.port), tcp::resolver::numeric_service,
                                    [lookup = lookup_, waker](const boost::system::error_code& error,
                                                              const tcp::resolver::results_type& results) {
                                        if (error == asio::error::operation_aborted) return;
                                        lookup->done = true;
                                        for (const auto& result : results)
                                            lookup->found.emplace_back(result.endpoint());
                                        waker.notify();
                                    });
}

Dial::~Dial() {
    if (lookup_) lookup_->resolver.cancel();
}

void Dial::try_next() {
    const net::Endpoint endpoint = untried_.front();
    untried_.erase(untried_.begin());
    socket_.emplace(net::Native(io_));
    socket_->wake(waker_);
    socket_->connect(endpoint);
}

std::optional<int> Dial::poll() {
    if (lookup_ && lookup_->done) {
        untried_ = std::move(lookup_->found);
        lookup_.reset();
        if (untried_.empty()) return EHOSTUNREACH;
        try_next();
    }
    if (lookup_) return std::nullopt;
    for (;;) {
        const std::optional<int> result = socket_->connect_result();
        if (!result || *result == 0 || untried_.empty()) return result;
        try_next();
    }
}

net::Socket Dial::take() {
    return std::move(*socket_);
}

}  // namespace noren::proxy::upstream
