#pragma once
// Is the engine there? One small GET every few seconds, outside of admission.

#include <atomic>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "config/address.hpp"
#include "config/config.hpp"

namespace noren::proxy::upstream {

namespace asio = boost::asio;

/// Runs on the ops thread's io_context. "Up": any answer below 500 to the last probe; an engine that is still
/// loading its model refuses connections or answers 503.
class HealthProbe {
  public:
    HealthProbe(asio::io_context& io, const config::Endpoint& engine, const config::Upstream& settings,
                std::atomic<bool>& up);
    ~HealthProbe();

    void start();
    void stop();
    /// From the next probe on.
    void set(const config::Upstream& settings);

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace noren::proxy::upstream
