#pragma once
// The whole of noren, put together: workers for the data, one more thread for everything else.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/config.hpp"
#include "metrics/telemetry.hpp"
#include "proxy/admission/connection_quota.hpp"
#include "proxy/admission/gate.hpp"
#include "proxy/admission/retry_after.hpp"
#include "proxy/drain.hpp"
#include "proxy/end_signals.hpp"
#include "proxy/engine_page/engine_view.hpp"
#include "proxy/engine_page/page_board.hpp"
#include "proxy/engine_page/page_fetcher.hpp"
#include "proxy/heartbeat.hpp"
#include "proxy/log/log.hpp"
#include "proxy/ops/control_socket.hpp"
#include "proxy/ops/ops_server.hpp"
#include "proxy/ops/status.hpp"
#include "proxy/refusal_log.hpp"
#include "proxy/reload.hpp"
#include "proxy/server.hpp"
#include "proxy/tls_reload.hpp"
#include "proxy/upstream/engine_health.hpp"
#include "proxy/upstream/health_probe.hpp"
#include "proxy/upstream/resolver.hpp"

namespace noren::proxy {

/// Constructing binds every address (throws std::exception with a sentence for the operator); run() serves
/// until a drain that was asked to end the process is over. run() may be called from any one thread, which
/// becomes the ops thread.
class App {
  public:
    App(const config::Resolved& loaded, config::Sources sources, const HeartbeatLimits& heartbeat = {});
    ~App();

    /// with_signals: SIGTERM, SIGINT and SIGHUP are this App's; when it returns they are blocked, for good.
    void run(bool with_signals);

    /// Any thread: into the log, where a reader that is stuck delays nobody.
    void warn(std::string_view message);
    /// Any thread: as the signals would.
    void terminate();
    void reload();
    void stop_now();

    std::uint16_t port() const { return server_.port(); }
    std::uint16_t ops_port() const { return ops_.port(); }

  private:
    OpsHooks ops_hooks();
    Drain::Hooks drain_hooks();
    void apply(const config::Config& config);
    void set_limits(const config::Config& config);
    void put_in_force(const config::Config& config);
    void handle_signals();
    void terminate_with(std::chrono::milliseconds lame_duck);
    void end();
    std::uint32_t most_connections() const;

    // What happens to its parts (app_events.cpp).
    void engine_changed(bool up, std::string_view why);
    void page_fetched(const engine_page::Outcome& outcome);
    void worker_changed(std::size_t worker, bool stuck);
    void refusing(std::string_view reason, const RefusalEpisode::News& news);

    // What it tells of itself (app_status.cpp).
    void sample_gauges();
    void sample_one(std::string name, std::string help, std::function<std::optional<double>()> read);
    void sample_admission();
    void sample_service();
    void sample_certificates();
    std::string metrics_page();
    Status status();
    std::vector<std::string> not_ready_because() const;

    // What it can be told (app_control.cpp).
    std::string control(std::string_view words);
    std::string reload_for_control();
    std::string override_limit(std::uint32_t limit);

    asio::io_context io_{1};
    Log log_;
    metrics::Telemetry telemetry_;
    TlsReload tls_;
    std::shared_ptr<const Settings> settings_;
    net::ReserveDescriptor reserve_;
    admission::ConnectionQuota quota_;
    admission::Gate gate_;
    admission::RetryAfter retry_after_;
    upstream::EngineHealth engine_health_;
    config::Address engine_;
    upstream::Resolver resolver_;
    engine_page::PageBoard pages_;
    engine_page::EngineView engine_view_;
    Services services_;
    Heartbeat heartbeat_;
    Server server_;
    OpsServer ops_;
    std::unique_ptr<ControlSocket> control_;
    upstream::HealthProbe probe_;
    RefusalLog refusals_;
    engine_page::PageFetcher page_fetcher_;
    Drain drain_;
    Reload reload_;
    asio::signal_set signals_;
    bool terminating_ = false;
    EndSignals end_signals_;
    bool limit_overridden_ = false;  ///< by `noren ctl limit`, until the next reload
    const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace noren::proxy
