#pragma once
// The ops endpoint: GET-only HTTP for Prometheus, probes and people, on a thread of its own, so that neither
// a scrape nor a slow reader of one can delay a token. What changes anything is not here (see
// control_socket.hpp).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "config/address.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

/// What the endpoint answers with; called on the ops thread.
struct OpsHooks {
    std::function<std::string()> metrics;  ///< Prometheus text 0.0.4
    std::function<std::string()> status_json;
    std::function<std::string()> config_yaml;  ///< effective, secrets masked
    std::function<bool()> ready;
    std::function<std::string()> ready_json;  ///< {"ready":..., "because":[...]}
    std::function<bool()> drained;            ///< nothing runs any more, or no drain was asked for
};

class OpsServer {
  public:
    /// Binds at once; throws boost::system::system_error. An empty host or "::" is every address of both
    /// families.
    OpsServer(asio::io_context& io, const config::Endpoint& listen, OpsHooks hooks);
    ~OpsServer();

    void start();
    /// Takes no more connections and ends the waiting ones.
    void stop();
    std::uint16_t port() const;
    std::string address() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace noren::proxy
