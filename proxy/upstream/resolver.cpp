#include "proxy/upstream/resolver.hpp"

#include <memory>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

namespace noren::proxy::upstream {

namespace asio = boost::asio;
using asio::ip::tcp;

void Resolver::resolve(const std::string& host, std::uint16_t port, net::Loop& loop, Found found) {
    auto resolver = std::make_shared<tcp::resolver>(io_);
    auto answer = [resolver, &loop, found = std::move(found)](const boost::system::error_code&,
                                                              const tcp::resolver::results_type& results) {
        std::vector<net::SocketAddress> addresses;
        for (const auto& result : results)
            addresses.emplace_back(result.endpoint());
        loop.post([found, addresses = std::move(addresses)] { found(addresses); });
    };
    asio::post(io_, [resolver, host, port, answer = std::move(answer)]() mutable {
        resolver->async_resolve(host, std::to_string(port), tcp::resolver::numeric_service,
                                std::move(answer));
    });
}

}  // namespace noren::proxy::upstream
