#pragma once
// Where the ops endpoint listens.

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "config/address.hpp"

namespace noren::proxy {

/// Bound and listening. The host is a literal address; an empty one or "::" is every address of both
/// families, of IPv4 alone where there is no IPv6. Port 0: any free one. Throws boost::system::system_error
/// with the address in its text.
boost::asio::ip::tcp::acceptor listen_for_ops(boost::asio::io_context& io, const config::Address& listen);

}  // namespace noren::proxy
