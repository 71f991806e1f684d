#include "tests/sim/peer_watch.hpp"

#include <poll.h>

#include <utility>

namespace sim {

bool has_left(net::ip::tcp::socket& socket) {
    pollfd look{socket.native_handle(), POLLRDHUP, 0};
    return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void PeerWatch::start(std::function<void()> on_gone) {
    on_gone_ = std::move(on_gone);
    stopping_ = false;
    read();
}

net::awaitable<void> PeerWatch::stop() {
    stopping_ = true;
    boost::system::error_code ignored;
    if (reading_) socket_.cancel(ignored);
    while (reading_)
        co_await ended_.until(TimePoint::max());
}

void PeerWatch::read() {
    // A client that sends that much ahead is not watched any further; its next request is read in turn.
    if (buffer_.size() >= k_read_ahead) return;
    reading_ = true;
    socket_.async_read_some(buffer_.prepare(4096), [this](boost::system::error_code error,
                                                          std::size_t bytes) { on_read(error, bytes); });
}

void PeerWatch::on_read(boost::system::error_code error, std::size_t bytes) {
    reading_ = false;
    buffer_.commit(bytes);
    if (!error && !stopping_) return read();
    // Aborted = closed on this side: a fault, or the engine's end.
    if (error && error != net::error::operation_aborted && !stopping_) on_gone_();
    ended_.wake();
}

}  // namespace sim
