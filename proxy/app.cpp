#include "proxy/app.hpp"

#include <signal.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>
#include <boost/json.hpp>

#include "config/render.hpp"
#include "proxy/descriptors.hpp"
#include "proxy/ops/json_text.hpp"
#include "proxy/problem.hpp"
#include "proxy/version.hpp"

namespace noren::proxy {
namespace {

namespace json = boost::json;

metrics::TelemetrySettings telemetry_settings(const config::Config& config) {
    return {config.metrics.models, config.metrics.max_models, std::string(version()), std::string(revision()),
            std::string(compiler())};
}

admission::GateLimits gate_limits(const config::Config& config) {
    return {config.admission.max_concurrency, config.admission.max_queue};
}

admission::ConnectionLimits connection_limits(const config::Config& config) {
    const std::uint32_t cap = config.admission.max_concurrency;
    return {config.downstream.max_connections, connections_that_fit(descriptor_limit(), cap),
            config.downstream.max_connections_per_client, k_kept_without_permit,
            kept_for_engine(descriptor_limit(), cap)};
}

constexpr std::array k_signals = {SIGTERM, SIGINT, SIGHUP};

/// For the rest of the process: an echo of the signal that ended it (end_signals.hpp) must not cut off the
/// last lines of the logs, nor make a failure of a clean end.
void hold_signals_back() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : k_signals)
        sigaddset(&signals, signal);
    ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

unsigned worker_count(const config::Config& config) {
    return config.workers != 0 ? config.workers : default_workers();
}

config::Address page_address(const config::Config& config) {
    const std::string& url = config.engine_metrics.url;
    return *config::parse_upstream(url.empty() ? config.upstream.url : url).address;
}

}  // namespace

App::App(const config::Resolved& loaded, config::Sources sources, const HeartbeatLimits& heartbeat)
    : log_(loaded.config->log),
      telemetry_(telemetry_settings(*loaded.config)),
      tls_(io_, *loaded.config, telemetry_, log_, [this] { put_in_force(settings_->config); }),
      settings_(std::make_shared<const Settings>(*loaded.config, tls_.contexts())),
      quota_(connection_limits(*loaded.config)),
      gate_(gate_limits(*loaded.config)),
      engine_(*config::parse_upstream(loaded.config->upstream.url).address),
      resolver_(io_),
      engine_view_(pages_, page_address(*loaded.config)),
      services_{reserve_,  quota_,  gate_,          retry_after_, telemetry_,
                resolver_, engine_, engine_health_, pages_},
      heartbeat_(
          io_, worker_count(*loaded.config),
          [this](std::size_t worker, net::Posting& posting) { server_.post(worker, posting); },
          [this](std::size_t worker, bool stuck) { worker_changed(worker, stuck); }, heartbeat),
      server_(services_, settings_, *config::parse_listen(loaded.config->listen).address,
              worker_count(*loaded.config)),
      ops_(io_, *config::parse_listen_tcp(loaded.config->ops.listen).address, ops_hooks()),
      probe_(server_.loop(), resolver_, engine_, loaded.config->upstream, tls_.contexts().upstream,
             engine_health_, [this](bool up, std::string_view why) { engine_changed(up, why); }),
      refusals_(
          io_, {"limit", "client_limit", "descriptors", "memory"},
          [this](std::string_view reason) { return telemetry_.process().connections_refused.count(reason); },
          [this](std::string_view reason, const RefusalEpisode::News& news) { refusing(reason, news); }),
      page_fetcher_(server_.loop(), resolver_, page_address(*loaded.config), pages_,
                    [this](const engine_page::Outcome& outcome) { page_fetched(outcome); }),
      drain_(io_, drain_hooks()),
      reload_(io_, loaded, std::move(sources), telemetry_, log_,
              [this](const config::Config& next) { apply(next); }),
      signals_(io_) {
    telemetry_.set_access_log([this](std::string_view line) { log_.access(line); });
    telemetry_.config_loaded(std::chrono::system_clock::now());
    sample_gauges();
    if (loaded.config->control.socket.empty()) return;
    try {
        control_ =
            std::make_unique<ControlSocket>(io_, loaded.config->control.socket,
                                            [this](std::string_view command) { return control(command); });
    } catch (const std::exception& problem) {
        // Signals, the file and the ops endpoint still work: no reason to keep an engine from its clients.
        std::string because = sentence_of(problem);
        if (is_about_rights(problem)) because += "; set control.socket to a path you may write";
        log_.event(Level::warning, "no control socket", {{"because", because}});
    }
}

App::~App() = default;

void App::run(bool with_signals) {
    if (with_signals) {
        for (const int signal : k_signals)
            signals_.add(signal);
        handle_signals();
    }
    server_.start();
    ops_.start();
    if (control_) control_->start();
    probe_.start();
    reload_.start();
    heartbeat_.start();
    refusals_.start();
    tls_.start();
    const MemoryBound bound = memory_bound(settings_->config, server_.workers(), most_connections());
    log_.event(Level::info, "serving",
               {{"listen", server_.address()},
                {"engine", config::to_string(engine_)},
                {"ops", ops_.address()},
                {"workers", std::to_string(server_.workers())},
                {"max_concurrency", std::to_string(settings_->config.admission.max_concurrency)},
                {"max_connections", std::to_string(most_connections())},
                {"memory_worst_case_mib", std::to_string(bound.worst_case >> 20)},
                {"version", std::string(version())}});
    io_.run();
    server_.stop(Stop::now);
    server_.join();
    log_.event(Level::info, "stopped");
    if (with_signals) hold_signals_back();
}

std::uint32_t App::most_connections() const {
    const admission::ConnectionLimits limits = quota_.limits();
    return std::min(limits.in_all, limits.descriptors);
}

void App::handle_signals() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (error) return;
        if (signal == SIGHUP) {
            reload_.now();
        } else if (end_signals_.on_signal(signal, std::chrono::steady_clock::now()) !=
                   EndSignals::Wish::none) {
            // SIGINT is somebody at a terminal: no router has to notice anything.
            const std::chrono::milliseconds none(0);
            terminate_with(signal == SIGINT ? none : settings_->config.drain.lame_duck);
        }
        handle_signals();
    });
}

void App::warn(std::string_view message) {
    log_.event(Level::warning, message);
}

void App::terminate() {
    asio::post(io_, [this] { terminate_with(settings_->config.drain.lame_duck); });
}

void App::reload() {
    asio::post(io_, [this] { reload_.now(); });
}

void App::stop_now() {
    asio::post(io_, [this] { io_.stop(); });
}

/// Drain, then end. Asked a second time: end now.
void App::terminate_with(std::chrono::milliseconds lame_duck) {
    if (std::exchange(terminating_, true)) {
        log_.event(Level::warning, "ending at once: asked a second time");
        io_.stop();
        return;
    }
    log_.event(Level::info, "draining, then ending");
    if (drain_.phase() == Drain::Phase::drained) end();
    drain_.begin(settings_->config.drain, lame_duck);
}

/// Once those who wait at /-/drain-wait have their answer.
void App::end() {
    ops_.stop();
    asio::post(io_, [this] { io_.stop(); });
}

Drain::Hooks App::drain_hooks() {
    return {
        .lame_duck =
            [this] {
                server_.stop(Stop::closing);
                if (!terminating_) log_.event(Level::info, "draining");  // else that is told already
            },
        .refuse =
            [this] {
                gate_.close();
                server_.stop(Stop::refuse);
                log_.event(Level::info, "refusing new work");
            },
        .resume =
            [this] {
                gate_.open();
                server_.stop(Stop::no);
                log_.event(Level::info, "drain called off");
            },
        .idle = [this] { return telemetry_.process().inflight.Value() == 0; },
        .ended =
            [this](bool in_time) {
                log_.event(in_time ? Level::info : Level::warning,
                           in_time ? "drained" : "drain.timeout is over");
                if (terminating_) end();
            },
    };
}

void App::apply(const config::Config& config) {
    const std::string overridden = std::to_string(gate_.limits().max_concurrency);
    log_.set_level(level_of(config.log.level));
    telemetry_.set_models(config.metrics.models, config.metrics.max_models);
    set_limits(config);
    if (std::exchange(limit_overridden_, false))
        reload_.note(Level::info, "the override " + overridden + " is gone, the limit is " +
                                      std::to_string(config.admission.max_concurrency));
    tls_.set(config);
    put_in_force(config);
}

void App::set_limits(const config::Config& config) {
    gate_.set_limits(gate_limits(config));
    quota_.set_limits(connection_limits(config));
}

void App::put_in_force(const config::Config& config) {
    settings_ = std::make_shared<const Settings>(config, tls_.contexts());
    server_.apply(settings_);
    probe_.set(config.upstream, tls_.contexts().upstream);
}

OpsHooks App::ops_hooks() {
    return {
        .metrics = [this] { return metrics_page(); },
        .status_json = [this] { return to_json(status()); },
        .config_yaml = [this] { return config::render(settings_->config); },
        .ready = [this] { return not_ready_because().empty(); },
        .ready_json =
            [this] {
                const auto because = not_ready_because();
                return json::serialize(
                    json::object{{"ready", because.empty()}, {"because", json_texts(because)}});
            },
        .drained =
            [this] { return drain_.phase() == Drain::Phase::no || drain_.phase() == Drain::Phase::drained; },
        .draining = [this] { return drain_.phase() != Drain::Phase::no; },
        .complaint = [this] { return heartbeat_.complaint(); },
        .look_at_engine =
            [this] {
                return engine_view_.look(settings_->config.engine_metrics, tls_.contexts().upstream,
                                         metrics::Clock::now());
            },
    };
}

}  // namespace noren::proxy
