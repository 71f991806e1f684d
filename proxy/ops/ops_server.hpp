#pragma once
// The ops endpoint: GET-only HTTP for Prometheus, probes and people, on a thread of its own, so that neither
// a scrape nor a slow reader of one can delay a token. Changes go through control_socket.hpp.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "config/address.hpp"
#include "proxy/ops/ops_pages.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

struct OpsLimits {
    /// Open at once. One more takes the place of the longest idle one, or else of the one whose answer is not
    /// taken for the longest, so that nobody who opens connections can shut out the kubelet's probes.
    std::size_t connections = 256;
    std::size_t drain_waits = 64;            ///< waiting at once; more are answered 503
    std::chrono::milliseconds idle{30'000};  ///< for a request head to come, and for an answer to be taken
    /// For the engine's page, on the way to noren's own: a scrape of noren must not fail for a slow engine.
    std::chrono::milliseconds engine{1'000};
};

/// One thread: the one that runs io.
class OpsServer {
  public:
    /// Binds at once, as listen_for_ops() does.
    OpsServer(asio::io_context& io, const config::Address& listen, OpsHooks hooks,
              const OpsLimits& limits = {});
    ~OpsServer();

    void start();
    /// Takes no more connections, closes the idle ones and answers the waiting ones. Their answers have been
    /// handed to the kernel before anything that is posted to io after this call runs.
    void stop();
    std::uint16_t port() const;
    /// As bound.
    std::string address() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace noren::proxy
