// What noren tells of itself when it is asked: its metrics page, whether it is ready, its status.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/app.hpp"
#include "proxy/version.hpp"

namespace noren::proxy {
namespace {

using Value = std::optional<double>;

/// In seconds since the epoch.
Value expiry_of(const std::shared_ptr<const net::TlsContext>& context) {
    const auto end = context ? context->expiry() : std::nullopt;
    if (!end) return std::nullopt;
    return std::chrono::duration<double>(end->time_since_epoch()).count();
}

}  // namespace

std::string App::metrics_page() {
    engine_view_.update(metrics::Clock::now());
    std::string page = telemetry_.exposition();
    engine_view_.append_page(page, gate_.waiting());
    return page;
}

/// Never "saturated": a router that drops a full server sends its load to the next one until all are dropped.
std::vector<std::string> App::not_ready_because() const {
    std::vector<std::string> because;
    if (drain_.phase() != Drain::Phase::no) because.emplace_back("draining");
    if (!engine_health_.up()) because.emplace_back("engine_down");
    return because;
}

void App::sample_gauges() {
    sample_admission();
    sample_service();
    sample_certificates();
    telemetry_.sample_counter("noren_log_lines_dropped_total",
                              "Log lines lost because the sink was slower than the traffic",
                              [this] { return static_cast<double>(log_.dropped()); });
    engine_view_.sample_into(telemetry_);
}

void App::sample_one(std::string name, std::string help, std::function<std::optional<double>()> read) {
    telemetry_.sample(std::move(name), std::move(help), {{{}, std::move(read)}});
}

void App::sample_admission() {
    sample_one("noren_queued_requests", "Requests waiting for admission",
               [this]() -> Value { return gate_.waiting(); });
    sample_one("noren_running_requests", "Requests in the engine: permits held",
               [this]() -> Value { return gate_.running(); });
    sample_one("noren_concurrency_limit", "Requests that may be in the engine at once; 0 = unlimited",
               [this]() -> Value { return gate_.limits().max_concurrency; });
    sample_one(
        "noren_concurrency_limit_overridden",
        "1 while the limit is that of `noren ctl limit`, until the next reload, and not that of the config",
        [this]() -> Value { return limit_overridden_ ? 1 : 0; });
    sample_one("noren_queue_capacity", "Requests that may wait",
               [this]() -> Value { return gate_.limits().max_queue; });
    sample_one("noren_saturation_ratio", "(running + queued) / concurrency limit; absent when unlimited",
               [this]() -> Value {
                   const std::uint32_t cap = gate_.limits().max_concurrency;
                   if (cap == 0) return std::nullopt;
                   return (static_cast<double>(gate_.running()) + gate_.waiting()) / cap;
               });
}

void App::sample_service() {
    sample_one("noren_upstream_up", "1 if the last health probe of the engine was answered",
               [this]() -> Value { return engine_health_.up() ? 1 : 0; });
    sample_one("noren_draining", "1 while a drain is on",
               [this]() -> Value { return drain_.phase() != Drain::Phase::no ? 1 : 0; });
    sample_one("noren_client_connections", "Open client connections",
               [this]() -> Value { return static_cast<double>(server_.connections()); });
    telemetry_.sample(
        "noren_upstream_connections", "Connections to the engine",
        {{{{"state", "active"}},
          [this]() -> Value { return static_cast<double>(server_.upstream_active()); }},
         {{{"state", "idle"}}, [this]() -> Value { return static_cast<double>(server_.upstream_idle()); }}});
}

void App::sample_certificates() {
    telemetry_.sample(
        "noren_tls_certificate_expiry_timestamp_seconds",
        "When the certificate shown to clients, and the one shown to the engine, ends, in seconds "
        "since the epoch; absent where none is shown",
        {{{{"side", "client"}}, [this] { return expiry_of(tls_.contexts().downstream); }},
         {{{"side", "upstream"}}, [this] { return expiry_of(tls_.contexts().upstream); }}});
}

Status App::status() {
    Status s;
    s.version = version();
    s.revision = revision();
    s.uptime_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
    s.not_ready_because = not_ready_because();
    s.ready = s.not_ready_because.empty();
    s.drain = drain_.phase_name();
    s.listen = server_.address();
    s.ops = ops_.address();
    s.engine = config::to_string(engine_);
    s.engine_up = engine_health_.up();
    s.engine_error = probe_.last_error();
    s.workers = server_.workers();
    s.connections = server_.connections();
    s.connections_by_worker = server_.connections_by_worker();
    s.most_connections = most_connections();
    s.memory = memory_bound(settings_->config, server_.workers(), most_connections());
    s.upstream_active = server_.upstream_active();
    s.upstream_idle = server_.upstream_idle();
    s.concurrency_limit = gate_.limits().max_concurrency;
    s.configured_limit = settings_->config.admission.max_concurrency;
    s.limit_overridden = limit_overridden_;
    s.queue_capacity = gate_.limits().max_queue;
    s.running = gate_.running();
    s.waiting = gate_.waiting();
    s.inflight = static_cast<std::uint64_t>(telemetry_.process().inflight.Value());
    s.awaiting_first_token = static_cast<std::uint64_t>(telemetry_.process().awaiting_first_token.Value());
    tls_.describe(s);
    reload_.describe(s);
    return s;
}

}  // namespace noren::proxy
