#include "tests/bench/load/target.hpp"

#include <stdexcept>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/url/parse.hpp>

namespace load {

namespace asio = boost::asio;

Target resolve(const std::string& url) {
    Target target;
    if (url.starts_with("unix:")) {
        try {
            target.endpoints.emplace_back(asio::local::stream_protocol::endpoint(url.substr(5)));
        } catch (const boost::system::system_error& error) {
            throw std::runtime_error(url + ": " + error.code().message());
        }
        target.host = "localhost";
        return target;
    }
    const auto parsed = boost::urls::parse_uri(url);
    if (!parsed || parsed->scheme() != "http" || parsed->encoded_host().empty())
        throw std::runtime_error(url + ": expected http://HOST:PORT[/PATH] or unix:/PATH");
    const std::string port = parsed->has_port() ? std::string(parsed->port()) : "80";
    asio::io_context io;
    asio::ip::tcp::resolver resolver(io);
    boost::system::error_code error;
    for (const auto& entry : resolver.resolve(parsed->host_address(), port, error))
        target.endpoints.emplace_back(entry.endpoint());
    if (error) throw std::runtime_error(url + ": " + error.message());
    target.host = std::string(parsed->encoded_host_and_port());
    const std::string path(parsed->encoded_target());
    if (path != "/") target.path = path;
    return target;
}

}  // namespace load
