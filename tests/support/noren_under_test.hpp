#pragma once
// A whole noren inside a test: real sockets on loopback, ports chosen by the kernel, a log of its own.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/load.hpp"
#include "proxy/app.hpp"
#include "tests/support/peer.hpp"

namespace test {

class NorenUnderTest {
  public:
    /// change: what the test wants otherwise than one worker, no probing and no control socket.
    NorenUnderTest(const std::string& upstream_url,
                   const std::function<void(noren::config::Config&)>& change = {},
                   const noren::proxy::HeartbeatLimits& heartbeat = {});
    ~NorenUnderTest();

    std::uint16_t port() const { return app_->port(); }
    std::uint16_t ops_port() const { return app_->ops_port(); }

    /// /metrics, as "name{labels}" -> value.
    std::map<std::string, double> metrics() const;
    double metric(const std::string& series) const;
    /// Waits, up to 20 s, until the series has the value; false if it never does.
    bool reaches(const std::string& series, double value) const;
    /// The access log so far. Stops the server first, so that it is whole.
    std::vector<std::string> access_log();
    /// Writes a config that differs from the present one, and has it loaded as SIGHUP does. Returns when it
    /// is in force.
    void reload(const std::function<void(noren::config::Config&)>& change);
    /// As SIGTERM does: drain, then end.
    void terminate() { app_->terminate(); }
    /// Waits, up to 20 s, for it to have ended by itself.
    bool ends() const;
    void stop();

  private:
    void write_config() const;

    std::string log_file_, config_file_;
    noren::config::Config config_;
    std::unique_ptr<noren::proxy::App> app_;
    std::thread thread_;
    std::atomic<bool> ended_{false};
};

/// GET over a connection of its own; the body.
std::string get(std::uint16_t port, const std::string& target);

}  // namespace test
