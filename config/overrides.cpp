#include "config/overrides.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "config/ascii.hpp"
#include "config/assembly.hpp"
#include "config/keys.hpp"
#include "config/nearest.hpp"
#include "config/read_file.hpp"
#include "config/value.hpp"

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

/// Names with the prefix that are meant for others, or for noren's logs.
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

void apply(const Overrides& overrides, std::string_view OverrideName::* source, Assembly& assembly) {
    for (const OverrideName& known : k_names) {
        const auto& text = overrides.*known.member;
        const Key* key = find_key(known.section, known.name);
        if (text && key) assembly.add_override(*key, *text, known.*source);
    }
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

LimitFile apply_limit_file(Assembly& assembly) {
    const std::string path = assembly.so_far().admission.max_concurrency_file;
    if (path.empty()) return {};
    LimitFile file = read_limit_file(path);
    if (const std::string_view limit = trimmed(file.text); file.warning.empty() && !limit.empty())
        assembly.add_override(*find_key("admission", "max_concurrency"), limit, path);
    return file;
}

Resolved finish(const Sources& sources, Assembly&& assembly, std::string file_text) {
    apply(sources.environment, &OverrideName::variable, assembly);
    apply(sources.flags, &OverrideName::flag, assembly);
    LimitFile limit = apply_limit_file(assembly);
    return {std::move(assembly).finish(), std::move(file_text), std::move(limit)};
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

LimitFile read_limit_file(const std::string& path) {
    auto file = read_file(path);
    if (auto* text = std::get_if<std::string>(&file)) return {std::move(*text), ""};
    const Mistake& mistake = std::get<Mistake>(file);
    if (mistake.found == k_no_such_file) return {};
    return {mistake.found, "admission.max_concurrency_file says nothing: " + path + " is " + mistake.found};
}

std::optional<std::string> Sources::file() const {
    return flags.config ? flags.config : environment.config;
}

Resolved load(const Sources& sources) {
    const auto path = sources.file();
    if (!path) return finish(sources, Assembly{}, "");
    auto file = read_file(*path);
    if (auto* text = std::get_if<std::string>(&file)) return load(sources, std::move(*text));
    Assembly assembly;
    assembly.add_gap(std::get<Mistake>(std::move(file)));
    return finish(sources, std::move(assembly), "");
}

Resolved load(const Sources& sources, std::string file_text) {
    Assembly assembly;
    assembly.add_text(file_text, sources.file().value_or("config"));
    return finish(sources, std::move(assembly), std::move(file_text));
}

std::string control_socket(const Sources& sources) {
    Assembly assembly;
    if (const auto path = sources.file()) {
        const auto file = read_file(*path);
        if (const auto* text = std::get_if<std::string>(&file)) assembly.add_text(*text, *path);
    }
    return assembly.so_far().control.socket;
}

}  // namespace noren::config
