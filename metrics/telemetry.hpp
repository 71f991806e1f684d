#pragma once
// All figures of this process: the registry behind /metrics, the series per model, gauges read at scrape
// time, and where access-log lines go.

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "metrics/catalogue.hpp"
#include "metrics/clock.hpp"
#include "metrics/process_collector.hpp"
#include "metrics/sampled.hpp"

namespace noren::metrics {

/// The series of one model label, resolved once. Thread-safe.
class ModelSeries {
  public:
    ModelSeries(ModelFamilies& families, std::string label);

    /// The counter of one way to end, created at its first use.
    prometheus::Counter& requests(ApiEndpoint endpoint, int code, Outcome outcome);
    /// At 0 before the first request, so that a rate over it begins there.
    void show_requests();

    std::array<Histogram*, k_folded_names.size()> duration;  ///< by Folded
    Histogram& ttft;
    Histogram& upstream_ttft;
    Histogram& itl;
    Histogram& tpot;
    Histogram& tps;
    Histogram& request_prompt_tokens;
    Histogram& request_output_tokens;
    prometheus::Counter& prompt_tokens;
    prometheus::Counter& prompt_cached_tokens;
    prometheus::Counter& output_tokens_events;
    prometheus::Counter& output_tokens_usage;
    prometheus::Counter& reasoning_tokens;
    std::array<prometheus::Counter*, k_finish_reasons.size()> finish_reasons;

  private:
    ModelFamilies& families_;
    const std::string label_;
    std::mutex mutex_;  ///< of the map: taken once for each request
    std::unordered_map<std::uint32_t, prometheus::Counter*> requests_;
};

struct TelemetrySettings {
    std::vector<std::string> models;  ///< always have their own label
    std::size_t max_models = 32;      ///< labels in all, without "unknown" and "other"
    std::string version, revision, compiler;
};

/// Thread-safe. Outlives every ExchangeMeter.
class Telemetry {
  public:
    using AccessLog = std::function<void(std::string_view line)>;

    explicit Telemetry(const TelemetrySettings& settings);

    /// Everything, as Prometheus text 0.0.4.
    std::string exposition() const;

    /// A gauge read at each scrape, on the scraping thread. Empty: the series is absent just now.
    void sample(std::string name, std::string help, std::vector<LabelledReading> readings);

    /// Likewise a counter that is kept elsewhere.
    void sample_counter(std::string name, std::string help, std::function<double()> read);
    void sample_counter(std::string name, std::string help, std::vector<LabelledReading> readings);

    /// Set before the first exchange.
    void set_access_log(AccessLog log) { access_log_ = std::move(log); }
    void log_access(std::string_view line) const;

    /// An attempt to connect to the engine has ended.
    void upstream_connect(bool ok, Duration took);
    /// A client's connection that was closed as soon as it was accepted; why: a label of
    /// noren_client_connections_refused_total.
    void connection_refused(std::string_view why);
    /// With a client; result: a label of noren_tls_handshakes_total.
    void tls_handshake(std::string_view result) { process_.tls_handshakes.add(result); }
    /// result: a label of noren_engine_page_fetches_total. bytes: of the body.
    void page_fetch(std::string_view result, std::size_t bytes);
    void page_share() { process_.page_shares.Increment(); }
    /// Changed TLS files were taken over, or refused.
    void tls_reload(bool ok) { process_.tls_reloads.add(ok ? "ok" : "error"); }
    /// The configuration that noren started with is in force.
    void config_loaded(std::chrono::system_clock::time_point at);
    /// A reload was tried.
    void config_reload(bool ok, std::chrono::system_clock::time_point at);
    void config_restart_required(bool required);
    /// A head that was refused before there was an exchange: requests, failures, bytes sent and a log line of
    /// its own. body_sent: bytes of the answer's body.
    void refused_head(int status, Outcome outcome, std::string_view reason, std::size_t body_sent);

    /// From now on; any thread. A label that is there stays, as its counters must: whoever is no longer named
    /// keeps it, and a lower number only means that no more are made.
    void set_models(const std::vector<std::string>& always, std::size_t max_models);
    /// may_create: the name was accepted by the engine. Others get a label of their own only if they have it
    /// already, so that nobody can use the labels up with invented names.
    ModelSeries& model(std::string_view name, bool may_create);
    ProcessWide& process() { return process_; }

  private:
    ModelSeries& add_model(std::string label);

    Registry registry_;
    ModelFamilies families_;
    ProcessWide process_;
    std::vector<std::unique_ptr<Sampled>> sampled_;
    ProcessCollector process_collector_;
    AccessLog access_log_;
    std::size_t max_models_ = 0;
    std::mutex models_mutex_;
    std::unordered_map<std::string, std::unique_ptr<ModelSeries>> models_;
    ModelSeries& unknown_;
    ModelSeries& other_;
};

}  // namespace noren::metrics
