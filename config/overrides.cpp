#include "config/overrides.hpp"

#include <algorithm>
#include <array>

#include "config/ascii.hpp"
#include "config/nearest.hpp"

namespace noren::config {

namespace {

constexpr std::string_view k_prefix = "NOREN_";

constexpr std::array k_names = {
    OverrideName{"--config", "NOREN_CONFIG", "", "", &Overrides::config, "configuration file (YAML)"},
    OverrideName{"--listen", "NOREN_LISTEN", "", "listen", &Overrides::listen,
                 "where clients connect: IPv4:port, [IPv6]:port, :port or unix:/path"},
    OverrideName{"--upstream", "NOREN_UPSTREAM", "upstream", "url", &Overrides::upstream,
                 "the engine: http://host:port, https://host:port or unix:/path"},
    OverrideName{"--ops", "NOREN_OPS", "ops", "listen", &Overrides::ops,
                 "metrics, health and status: IPv4:port, [IPv6]:port or :port"},
    OverrideName{"--workers", "NOREN_WORKERS", "", "workers", &Overrides::workers,
                 "threads; 0 = CPUs of the container, at most 4"},
    OverrideName{"--max-concurrency", "NOREN_MAX_CONCURRENCY", "admission", "max_concurrency",
                 &Overrides::max_concurrency, "requests in the engine at once; 0 = unlimited"},
    OverrideName{"--max-queue", "NOREN_MAX_QUEUE", "admission", "max_queue", &Overrides::max_queue,
                 "requests that may wait; 0 = none"},
    OverrideName{"--queue-timeout", "NOREN_QUEUE_TIMEOUT", "admission", "queue_timeout",
                 &Overrides::queue_timeout, "longest wait, such as 30s; 0 = no limit"},
    OverrideName{"--log-level", "NOREN_LOG_LEVEL", "log", "level", &Overrides::log_level,
                 "trace, debug, info, warning, error or off"},
};

/// The pod's identity, which manifests put into every container's environment.
constexpr std::array<std::string_view, 3> k_identity = {"NOREN_POD", "NOREN_NODE", "NOREN_NAMESPACE"};

/// "service links" of the kubelet: X_SERVICE_HOST, X_SERVICE_PORT[_NAME], X_PORT,
/// X_PORT_80_TCP[_ADDR|_PORT|_PROTO].
bool is_service_link(std::string_view name, std::string_view value) {
    if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string_view::npos) return true;
    if (name.ends_with("_PORT")) return value.find("://") != std::string_view::npos;
    const std::size_t port = name.find("_PORT_");
    return port != std::string_view::npos && port + 6 < name.size() && is_digit(name[port + 6]);
}

std::string unknown_variable(std::string_view name) {
    std::array<std::string_view, k_names.size()> variables;
    std::transform(k_names.begin(), k_names.end(), variables.begin(),
                   [](const OverrideName& known) { return known.variable; });
    // The prefix is the same for all and would make strangers look alike.
    for (std::string_view& variable : variables)
        variable.remove_prefix(k_prefix.size());
    const std::string_view close = nearest(name.substr(k_prefix.size()), variables);
    std::string warning = std::string(name) + " is not a variable of noren and has no effect";
    if (!close.empty()) warning.append("; did you mean ").append(k_prefix).append(close).append("?");
    return warning;
}

}  // namespace

std::span<const OverrideName> override_names() {
    return k_names;
}

Environment read_environment(const char* const* variables) {
    Environment environment;
    for (; variables && *variables; ++variables) {
        const std::string_view entry(*variables);
        if (!entry.starts_with(k_prefix)) continue;
        const std::size_t equals = std::min(entry.find('='), entry.size());
        const std::string_view name = entry.substr(0, equals);
        const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
        const auto known = std::find_if(k_names.begin(), k_names.end(),
                                        [name](const OverrideName& one) { return one.variable == name; });
        if (known != k_names.end()) {
            if (!value.empty()) environment.overrides.*known->member = std::string(value);
        } else if (std::find(k_identity.begin(), k_identity.end(), name) == k_identity.end() &&
                   !is_service_link(name, value)) {
            environment.warnings.push_back(unknown_variable(name));
        }
    }
    return environment;
}

}  // namespace noren::config
