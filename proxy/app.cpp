#include "proxy/app.hpp"

#include <algorithm>
#include <csignal>
#include <utility>
#include <variant>

#include <boost/asio/post.hpp>
#include <boost/json.hpp>

#include "config/render.hpp"
#include "proxy/descriptors.hpp"
#include "proxy/net/client_address.hpp"
#include "proxy/ops/control_protocol.hpp"
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
    return {config.downstream.max_connections,
            connections_that_fit(descriptor_limit(), config.admission.max_concurrency),
            config.downstream.max_connections_per_client};
}

unsigned worker_count(const config::Config& config) {
    return config.workers != 0 ? config.workers : default_workers();
}

config::Endpoint page_endpoint(const config::Config& config) {
    const std::string& url = config.engine_metrics.url;
    return *config::parse_upstream(url.empty() ? config.upstream.url : url).endpoint;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

}  // namespace

App::App(const config::Resolved& loaded, config::Sources sources, const HeartbeatLimits& heartbeat)
    : log_(loaded.config->log),
      telemetry_(telemetry_settings(*loaded.config)),
      tls_(io_, *loaded.config, telemetry_, log_, [this] { put_in_force(settings_->config); }),
      settings_(std::make_shared<const Settings>(*loaded.config, tls_.contexts())),
      quota_(connection_limits(*loaded.config)),
      gate_(gate_limits(*loaded.config)),
      engine_(*config::parse_upstream(loaded.config->upstream.url).endpoint),
      resolver_(io_),
      engine_view_(pages_, page_endpoint(*loaded.config)),
      services_{reserve_,  quota_,  gate_,          retry_after_, telemetry_,
                resolver_, engine_, engine_health_, pages_},
      heartbeat_(
          io_, worker_count(*loaded.config),
          [this](std::size_t worker, net::Posting& posting) { server_.post(worker, posting); },
          [this](std::size_t worker, bool stuck) { worker_changed(worker, stuck); }, heartbeat),
      server_(services_, settings_, *config::parse_listen(loaded.config->listen).endpoint,
              worker_count(*loaded.config)),
      ops_(io_, *config::parse_listen_tcp(loaded.config->ops.listen).endpoint, ops_hooks()),
      probe_(server_.loop(), resolver_, engine_, loaded.config->upstream, tls_.contexts().upstream,
             engine_health_, [this](bool up, std::string_view why) { engine_changed(up, why); }),
      refusals_(
          io_, {"limit", "client_limit", "descriptors", "memory"},
          [this](std::string_view reason) { return telemetry_.process().connections_refused.count(reason); },
          [this](std::string_view reason, const RefusalEpisode::News& news) { refusing(reason, news); }),
      page_fetcher_(server_.loop(), resolver_, page_endpoint(*loaded.config), pages_,
                    [this](const engine_page::Outcome& outcome) { page_fetched(outcome); }),
      drain_(io_, drain_hooks()),
      reload_(io_, loaded, std::move(sources), telemetry_, log_,
              [this](const config::Config& next) { apply(next); }),
      signals_(io_) {
    telemetry_.set_access_log([this](std::string&& line, bool) { log_.access(std::move(line)); });
    telemetry_.config_loaded(std::chrono::system_clock::now());
    sample_gauges();
    if (loaded.config->control.socket.empty()) return;
    try {
        control_ =
            std::make_unique<ControlSocket>(io_, loaded.config->control.socket,
                                            [this](std::string_view command) { return control(command); });
    } catch (const std::exception& problem) {
        // Signals, the file and the ops endpoint still work, so this is no reason to keep an engine from its
        // clients.
        std::string because = sentence_of(problem);
        if (is_about_rights(problem)) because += "; set control.socket to a path you may write";
        log_.event(Level::warning, "no control socket", {{"because", because}});
    }
}

App::~App() = default;

void App::run(bool with_signals) {
    if (with_signals) {
        for (const int signal : {SIGTERM, SIGINT, SIGHUP})
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

void App::engine_changed(bool up, std::string_view why) {
    if (up) {
        log_.event(Level::info, "the engine is up", {{"engine", config::to_string(engine_)}});
    } else {
        log_.event(Level::warning, "the engine is down",
                   {{"engine", config::to_string(engine_)}, {"because", std::string(why)}});
    }
}

void App::page_fetched(const engine_page::Outcome& outcome) {
    const auto& page = outcome.page;
    const bool other_status = page && page->head.status != 200;
    telemetry_.page_fetch(other_status ? "status" : word_of(outcome.ending), page ? page->body.size() : 0);
}

void App::worker_changed(std::size_t worker, bool stuck) {
    log_.event(stuck ? Level::error : Level::warning, stuck ? "a worker is stuck" : "the worker turns again",
               {{"worker", std::to_string(worker)}});
}

void App::refusing(std::string_view reason, const RefusalEpisode::News& news) {
    using Kind = RefusalEpisode::News::Kind;
    std::string because = "no memory is left";
    if (reason == "limit") because = "downstream.max_connections are open";
    if (reason == "descriptors")
        because = "no file descriptor is left, of " + std::to_string(descriptor_limit()) + " (ulimit -n)";
    std::vector<Log::Field> fields{{"reason", std::string(reason)},
                                   {"refused", std::to_string(static_cast<std::uint64_t>(news.refused))},
                                   {"open", std::to_string(quota_.open())}};
    if (reason == "client_limit") {
        because = "a client has downstream.max_connections_per_client open";
        if (const auto client = quota_.last_client_full())
            fields.emplace_back("client", net::to_text(*client));
    }
    if (news.kind != Kind::over) fields.emplace_back("because", because);
    if (news.kind == Kind::begins)
        log_.event(Level::warning, "client connections are refused", fields);
    else if (news.kind == Kind::lasts)
        log_.event(Level::warning, "client connections are still refused", fields);
    else
        log_.event(Level::info, "client connections are taken again", fields);
}

Drain::Hooks App::drain_hooks() {
    return {
        [this] { server_.stop(Stop::closing); },
        [this] {
            gate_.close();
            server_.stop(Stop::refuse);
            log_.event(Level::info, "refusing new work");
        },
        [this] {
            gate_.open();
            server_.stop(Stop::no);
            log_.event(Level::info, "drain called off");
        },
        [this] { return telemetry_.process().inflight.Value() == 0; },
        [this](bool in_time) {
            log_.event(in_time ? Level::info : Level::warning, in_time ? "drained" : "drain.timeout is over");
            if (terminating_) end();
        },
    };
}

void App::apply(const config::Config& config) {
    const std::string overridden = std::to_string(gate_.limits().max_concurrency);
    log_.set_level(level_of(config.log.level));
    telemetry_.set_models(config.metrics.models, config.metrics.max_models);
    gate_.set_limits(gate_limits(config));
    quota_.set_limits(connection_limits(config));
    if (std::exchange(limit_overridden_, false))
        reload_.note(Level::info, "the override " + overridden + " is gone, the limit is " +
                                      std::to_string(config.admission.max_concurrency));
    tls_.set(config);
    put_in_force(config);
}

void App::put_in_force(const config::Config& config) {
    settings_ = std::make_shared<const Settings>(config, tls_.contexts());
    server_.apply(settings_);
    probe_.set(config.upstream, tls_.contexts().upstream);
}

OpsHooks App::ops_hooks() {
    return {
        [this] { return metrics_page(); },
        [this] { return to_json(status()); },
        [this] { return config::render(settings_->config); },
        [this] { return not_ready_because().empty(); },
        [this] {
            const auto because = not_ready_because();
            return json::serialize(
                json::object{{"ready", because.empty()}, {"because", json_texts(because)}});
        },
        [this] { return drain_.phase() == Drain::Phase::no || drain_.phase() == Drain::Phase::drained; },
        [this] { return drain_.phase() != Drain::Phase::no; },
        [this] { return heartbeat_.complaint(); },
        [this] { return engine_view_.look(settings_->config.engine_metrics, tls_.contexts().upstream); },
    };
}

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
    const auto one = [this](const char* name, const char* help, auto&& read) {
        telemetry_.sample(name, help, {{{}, std::forward<decltype(read)>(read)}});
    };
    using Value = std::optional<double>;
    one("noren_queued_requests", "Requests waiting for admission",
        [this]() -> Value { return gate_.waiting(); });
    one("noren_running_requests", "Requests in the engine: permits held",
        [this]() -> Value { return gate_.running(); });
    one("noren_concurrency_limit", "Requests that may be in the engine at once; 0 = unlimited",
        [this]() -> Value { return gate_.limits().max_concurrency; });
    one("noren_concurrency_limit_overridden",
        "1 while the limit is that of `noren ctl limit`, until the next reload, and not that of the config",
        [this]() -> Value { return limit_overridden_ ? 1 : 0; });
    one("noren_queue_capacity", "Requests that may wait",
        [this]() -> Value { return gate_.limits().max_queue; });
    one("noren_saturation_ratio", "(running + queued) / concurrency limit; absent when unlimited",
        [this]() -> Value {
            const std::uint32_t cap = gate_.limits().max_concurrency;
            if (cap == 0) return std::nullopt;
            return (static_cast<double>(gate_.running()) + gate_.waiting()) / cap;
        });
    one("noren_upstream_up", "1 if the last health probe of the engine was answered",
        [this]() -> Value { return engine_health_.up() ? 1 : 0; });
    one("noren_draining", "1 while a drain is on",
        [this]() -> Value { return drain_.phase() != Drain::Phase::no ? 1 : 0; });
    one("noren_client_connections", "Open client connections",
        [this]() -> Value { return static_cast<double>(server_.connections()); });
    telemetry_.sample(
        "noren_upstream_connections", "Connections to the engine",
        {{{{"state", "active"}},
          [this]() -> Value { return static_cast<double>(server_.upstream_active()); }},
         {{{"state", "idle"}}, [this]() -> Value { return static_cast<double>(server_.upstream_idle()); }}});
    const auto expiry = [](const std::shared_ptr<const net::TlsContext>& context) -> Value {
        const auto end = context ? context->expiry() : std::nullopt;
        if (!end) return std::nullopt;
        return std::chrono::duration<double>(end->time_since_epoch()).count();
    };
    telemetry_.sample(
        "noren_tls_certificate_expiry_timestamp_seconds",
        "When the certificate shown to clients, and the one shown to the engine, ends, in seconds "
        "since the epoch; absent where none is shown",
        {{{{"side", "client"}}, [this, expiry] { return expiry(tls_.contexts().downstream); }},
         {{{"side", "upstream"}}, [this, expiry] { return expiry(tls_.contexts().upstream); }}});
    telemetry_.sample_counter("noren_log_lines_dropped_total",
                              "Log lines lost because the sink was slower than the traffic",
                              [this] { return static_cast<double>(log_.dropped()); });
    engine_view_.sample_into(telemetry_);
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

std::string App::override_limit(std::uint32_t limit) {
    config::Config wanted = settings_->config;
    wanted.admission.max_concurrency = limit;
    gate_.set_limits(gate_limits(wanted));
    quota_.set_limits(connection_limits(wanted));
    limit_overridden_ = true;
    const std::string now = std::to_string(limit);
    const std::string configured = std::to_string(settings_->config.admission.max_concurrency);
    log_.event(Level::info, "the limit is overridden until the next reload",
               {{"limit", now}, {"configured", configured}});
    return control_answer(true,
                          "the limit is " + now + " until the next reload (configured: " + configured + ")");
}

std::string App::reload_for_control() {
    const ReloadResult result = reload_.now();
    return json::serialize(json::object{{"ok", result.ok},
                                        {"message", result.message},
                                        {"errors", json_texts(result.errors)},
                                        {"changes", json_texts(result.changes)},
                                        {"restart_required", json_texts(result.restart_required)}});
}

/// words: those behind `noren ctl`.
std::string App::control(std::string_view words) {
    using Kind = ControlCommand::Kind;
    const auto parsed = parse_control_command(words);
    if (const auto* mistake = std::get_if<std::string>(&parsed)) return control_answer(false, *mistake);
    const ControlCommand command = std::get<ControlCommand>(parsed);
    switch (command.kind) {
        case Kind::reload:
            return reload_for_control();
        case Kind::drain:
            drain_.begin(settings_->config.drain, settings_->config.drain.lame_duck);
            return control_answer(true, "draining");
        case Kind::undrain:
            if (terminating_) return control_answer(false, "this noren is ending and cannot be called back");
            drain_.call_off();
            return control_answer(true, "serving");
        case Kind::limit:
            return override_limit(command.limit);
        case Kind::ready: {
            const auto because = not_ready_because();
            return control_answer(because.empty(),
                                  because.empty() ? "ready" : "not ready: " + joined(because));
        }
        case Kind::status:
            break;
    }
    return json::serialize(json::object{{"ok", true}, {"status", json::parse(to_json(status()))}});
}

}  // namespace noren::proxy
