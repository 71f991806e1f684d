#pragma once
// One client connection: request after request, HTTP/1.1 with keep-alive.

#include <boost/asio/ip/tcp.hpp>

#include "tests/sim/core.hpp"

namespace sim {

/// Ends when the client or the engine ends it, or when it was idle for Options::keep_alive.
net::awaitable<void> serve_connection(net::ip::tcp::socket socket, Core& core);

}  // namespace sim
