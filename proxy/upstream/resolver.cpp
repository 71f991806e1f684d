#include "proxy/upstream/resolver.hpp"

#include <map>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

namespace noren::proxy::upstream {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Those under way, and who waits for each. io's thread only.
struct Resolver::Lookups {
    using Name = std::pair<std::string, std::uint16_t>;
    struct Asker {
        net::Loop* loop;
        Found found;
    };

    void end(const Name& name, const Addresses& addresses) {
        const auto ended = waiting.extract(name);
        for (const Asker& asker : ended.mapped())
            asker.loop->post([found = asker.found, addresses] { found(addresses); });
    }

    std::map<Name, std::vector<Asker>> waiting;
};

Resolver::Resolver(asio::io_context& io) : io_(io), lookups_(std::make_shared<Lookups>()) {}
Resolver::~Resolver() = default;

void Resolver::resolve(const std::string& host, std::uint16_t port, net::Loop& loop, Found found) {
    asio::post(io_,
               [this, name = Lookups::Name(host, port), asker = Lookups::Asker{&loop, std::move(found)}] {
                   std::vector<Lookups::Asker>& askers = lookups_->waiting[name];
                   askers.push_back(asker);
                   if (askers.size() > 1) return;
                   look_up(name.first, name.second, [lookups = lookups_, name](const Addresses& addresses) {
                       lookups->end(name, addresses);
                   });
               });
}

void Resolver::look_up(const std::string& host, std::uint16_t port, Found found) {
    auto resolver = std::make_shared<tcp::resolver>(io_);
    resolver->async_resolve(host, std::to_string(port), tcp::resolver::numeric_service,
                            [resolver, found = std::move(found)](const boost::system::error_code&,
                                                                 const tcp::resolver::results_type& results) {
                                Addresses addresses;
                                for (const auto& result : results)
                                    addresses.emplace_back(result.endpoint());
                                found(addresses);
                            });
}

}  // namespace noren::proxy::upstream
