#pragma once
// One connection to a server that requests are sent over, one at a time.

#include <memory>
#include <optional>
#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/bench/load/options.hpp"
#include "tests/bench/load/result.hpp"

namespace load {

namespace asio = boost::asio;

struct Target {
    asio::generic::stream_protocol::endpoint endpoint;
    std::string host;  ///< for the Host field
};

/// http://host:port or unix:/path; throws std::exception with what is wrong.
Target resolve(const std::string& url);

struct Request {
    std::string id;
    std::string body;
    std::string path;
    std::optional<std::chrono::microseconds> leave_after;  ///< our client goes away then
};

class Client {
  public:
    Client(asio::io_context& io, const Options& options, const Target& target)
        : io_(io), options_(options), target_(target) {}

    /// Never throws; what went wrong is in the result.
    asio::awaitable<Result> run(const Request& request);

  private:
    using Socket = asio::generic::stream_protocol::socket;

    asio::awaitable<std::string> connect();
    asio::awaitable<void> exchange(const Request& request, Result& result);

    asio::io_context& io_;
    const Options& options_;
    const Target& target_;
    std::shared_ptr<Socket> socket_;
};

}  // namespace load
