#include "proxy/ops/ops_listener.hpp"

#include <vector>

#include <boost/asio/ip/v6_only.hpp>
#include <boost/system/system_error.hpp>

namespace noren::proxy {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

/// In order of preference.
std::vector<tcp::endpoint> candidates(const config::Address& listen, boost::system::error_code& error) {
    if (listen.host.empty() || listen.host == "::")
        return {{asio::ip::address_v6::any(), listen.port}, {asio::ip::address_v4::any(), listen.port}};
    const auto address = asio::ip::make_address(listen.host, error);
    if (error) return {};
    return {{address, listen.port}};
}

void open_at(tcp::acceptor& acceptor, const tcp::endpoint& endpoint, boost::system::error_code& error) {
    acceptor.open(endpoint.protocol(), error);
    if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    boost::system::error_code ignored;
    if (error) acceptor.close(ignored);
}

}  // namespace

tcp::acceptor listen_for_ops(asio::io_context& io, const config::Address& listen) {
    tcp::acceptor acceptor(io);
    boost::system::error_code error;
    for (const tcp::endpoint& endpoint : candidates(listen, error)) {
        error.clear();
        open_at(acceptor, endpoint, error);
        // Only a family that this host has not got leads on to the next; a port in use is the operator's.
        if (error != asio::error::address_family_not_supported &&
            error != boost::system::errc::address_not_available)
            break;
    }
    if (error)
        throw boost::system::system_error(error,
                                          "cannot listen on " + config::to_string(listen) + " for ops");
    return acceptor;
}

}  // namespace noren::proxy
