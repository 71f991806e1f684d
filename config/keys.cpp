#include "config/keys.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace noren::config {

namespace {

using namespace std::chrono_literals;

constexpr Bytes k_kib = 1024;
constexpr Bytes k_mib = 1024 * k_kib;
constexpr Bytes k_gib = 1024 * k_mib;
constexpr std::uint32_t k_most_requests = 1'000'000;

/// `member(config)` is the member, const or not as the config is.
template <class T, class Member>
Key make_key(std::string_view section, std::string_view name, Member member, Rule<T> rule, Applies applies) {
    return {section,
            name,
            applies,
            [member, read = std::move(rule.read)](const Value& value, Config& config, Refusals& refusals) {
                std::optional<T> read_value = read(value, refusals);
                if (!read_value) return false;
                member(config) = std::move(*read_value);
                return true;
            },
            [member, write = std::move(rule.write)](const Config& config) { return write(member(config)); },
            [member](const Config& a, const Config& b) { return member(a) == member(b); },
            [member](const Config& from, Config& to) { member(to) = member(from); }};
}

template <class T>
Key key(std::string_view name, T Config::* field, Rule<T> rule, Applies applies = Applies::live) {
    const auto member = [field](auto& config) -> auto& { return config.*field; };
    return make_key("", name, member, std::move(rule), applies);
}

/// A struct in a Config: its name, and the members that lead to it. Calling it makes one key of the section.
template <class... Path>
class Section {
  public:
    explicit Section(std::string_view name, Path... path) : name_(name), path_(path...) {}

    template <class T, class Struct>
    Key operator()(std::string_view name, T Struct::* field, Rule<T> rule,
                   Applies applies = Applies::live) const {
        const auto member = [path = path_, field](auto& config) -> auto& {
            return std::apply([&](auto... step) -> auto& { return (config.*....*step).*field; }, path);
        };
        return make_key(name_, name, member, std::move(rule), applies);
    }

  private:
    std::string_view name_;
    std::tuple<Path...> path_;
};

std::vector<Key> make_keys() {
    constexpr auto after_restart = Applies::after_restart;
    const Section tls("tls", &Config::tls);
    const Section upstream("upstream", &Config::upstream);
    const Section upstream_tls("upstream.tls", &Config::upstream, &Upstream::tls);
    const Section admission("admission", &Config::admission);
    const Section downstream("downstream", &Config::downstream);
    const Section timeouts("timeouts", &Config::timeouts);
    const Section ops("ops", &Config::ops);
    const Section control("control", &Config::control);
    const Section reload("reload", &Config::reload);
    const Section drain("drain", &Config::drain);
    const Section log("log", &Config::log);
    const Section metrics("metrics", &Config::metrics);
    const Section engine_metrics("engine_metrics", &Config::engine_metrics);

    return {
        key("listen", &Config::listen, listen_address(), after_restart),
        key("listen_mode", &Config::listen_mode, file_mode(), after_restart),
        key("workers", &Config::workers, count(0, 256), after_restart),

        tls("certificate", &Tls::certificate, file_path()),
        tls("key", &Tls::key, file_path()),
        tls("client_ca", &Tls::client_ca, file_path()),
        tls("min_version", &Tls::min_version, one_of({"1.2", "1.3"})),

        upstream("url", &Upstream::url, upstream_url(), after_restart),
        upstream("idle_timeout", &Upstream::idle_timeout, duration(0ms, 1h)),
        upstream("health_path", &Upstream::health_path, request_path()),
        upstream("health_interval", &Upstream::health_interval, duration(0ms, 1h)),
        upstream("health_timeout", &Upstream::health_timeout, duration(10ms, 1h)),
        upstream_tls("ca", &UpstreamTls::ca, file_path()),
        upstream_tls("server_name", &UpstreamTls::server_name, host_name()),
        upstream_tls("verify", &UpstreamTls::verify, one_of({"on", "off"})),
        upstream_tls("certificate", &UpstreamTls::certificate, file_path()),
        upstream_tls("key", &UpstreamTls::key, file_path()),

        admission("max_concurrency", &Admission::max_concurrency, count(0, k_most_requests)),
        admission("max_concurrency_file", &Admission::max_concurrency_file, file_path()),
        admission("max_queue", &Admission::max_queue, count(0, k_most_requests)),
        admission("queue_timeout", &Admission::queue_timeout, duration(0ms, 24h)),
        admission("full_status", &Admission::full_status, one_of({429, 503})),
        admission("gated_paths", &Admission::gated_paths, path_patterns()),

        downstream("buffer", &Downstream::buffer, size(16 * k_kib, k_gib)),
        downstream("stall_timeout", &Downstream::stall_timeout, duration(0ms, 24h)),
        downstream("request_buffer", &Downstream::request_buffer, size(4 * k_kib, 64 * k_mib)),
        downstream("max_head", &Downstream::max_head, size(8 * k_kib, 63 * k_kib)),
        downstream("max_fields", &Downstream::max_fields, count(16, 1'000)),
        downstream("max_body", &Downstream::max_body, size(0, 1024 * k_gib)),
        downstream("min_upload_rate", &Downstream::min_upload_rate, size(0, k_gib)),
        downstream("min_upload_window", &Downstream::min_upload_window, duration(10ms, 1h)),
        downstream("max_connections", &Downstream::max_connections, count(1, 1'000'000)),
        downstream("max_connections_per_client", &Downstream::max_connections_per_client,
                   count(0, 1'000'000)),

        timeouts("head", &Timeouts::head, duration(10ms, 1h)),
        timeouts("body_idle", &Timeouts::body_idle, duration(0ms, 24h)),
        timeouts("keep_alive", &Timeouts::keep_alive, duration(0ms, 24h)),
        timeouts("connect", &Timeouts::connect, duration(10ms, 1h)),
        timeouts("first_byte", &Timeouts::first_byte, duration(0ms, 24h)),
        timeouts("upstream_idle", &Timeouts::upstream_idle, duration(0ms, 24h)),
        timeouts("tunnel_idle", &Timeouts::tunnel_idle, duration(0ms, 24h)),
        timeouts("total", &Timeouts::total, duration(0ms, 24h)),

        ops("listen", &Ops::listen, listen_tcp_address(), after_restart),
        control("socket", &Control::socket, socket_path(), after_restart),

        reload("watch", &Reload::watch, one_of({"auto", "poll"}), after_restart),

        drain("lame_duck", &Drain::lame_duck, duration(0ms, 1h)),
        drain("timeout", &Drain::timeout, duration(0ms, 24h)),

        log("level", &Log::level, one_of({"trace", "debug", "info", "warning", "error", "off"})),
        log("access", &Log::access, access_log(), after_restart),

        metrics("models", &Metrics::models, model_names()),
        metrics("max_models", &Metrics::max_models, count(1, 1'000)),

        engine_metrics("path", &EngineMetrics::path, page_path()),
        engine_metrics("url", &EngineMetrics::url, plain_url(), after_restart),
        engine_metrics("window", &EngineMetrics::window, duration(0ms, 1min)),
        engine_metrics("timeout", &EngineMetrics::timeout, duration(10ms, 1h)),
        engine_metrics("max_size", &EngineMetrics::max_size, size(4 * k_kib, 64 * k_mib)),
        engine_metrics("figures", &EngineMetrics::figures, one_of({"on", "off"})),
        engine_metrics("merge", &EngineMetrics::merge, one_of({"on", "off"})),
        engine_metrics("add_queue", &EngineMetrics::add_queue, one_of({"on", "off"})),
        engine_metrics("max_age", &EngineMetrics::max_age, duration(100ms, 1h)),
        engine_metrics("orca", &EngineMetrics::orca, one_of({"off", "asked", "always"})),
    };
}

}  // namespace

std::string key_path(std::string_view section, std::string_view name) {
    std::string path(section);
    if (!path.empty()) path += '.';
    return path.append(name);
}

std::string Key::path() const {
    return key_path(section, name);
}

std::span<const Key> keys() {
    static const std::vector<Key> all = make_keys();
    return all;
}

const Key* find_key(std::string_view section, std::string_view name) {
    for (const Key& key : keys()) {
        if (key.section == section && key.name == name) return &key;
    }
    return nullptr;
}

bool is_section(std::string_view path) {
    return !path.empty() &&
           std::any_of(keys().begin(), keys().end(), [path](const Key& key) { return key.section == path; });
}

}  // namespace noren::config
