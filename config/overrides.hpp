#pragma once
// The few keys one sets in a pod spec (`NOREN_*`) or tries by hand (flags), as they were typed. load.hpp puts
// them over the file.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace noren::config {

/// Values as they were typed; nothing = not given. Their rules are those of the keys in the file.
struct Overrides {
    std::optional<std::string> config;  ///< path of the file
    std::optional<std::string> listen;
    std::optional<std::string> upstream;
    std::optional<std::string> ops;
    std::optional<std::string> workers;
    std::optional<std::string> max_concurrency;
    std::optional<std::string> max_queue;
    std::optional<std::string> queue_timeout;
    std::optional<std::string> log_level;

    bool operator==(const Overrides&) const = default;
};

/// How one override is called in each place.
struct OverrideName {
    std::string_view flag;      ///< `--max-queue`
    std::string_view variable;  ///< `NOREN_MAX_QUEUE`
    std::string_view section;   ///< of the key it sets; `--config` sets none
    std::string_view name;
    std::optional<std::string> Overrides::* member;
    std::string_view help;  ///< one line for --help
};

/// All of them, in the order of --help.
std::span<const OverrideName> override_names();

struct Environment {
    Overrides overrides;
    std::vector<std::string> warnings;  ///< about NOREN_* variables that mean nothing to noren: typing slips
};

/// `variables` as in environ(7): `NAME=value` strings up to a null pointer. A variable set to nothing counts
/// as not given (templates leave such). Not warned about: the pod's identity (NOREN_POD, NOREN_NODE,
/// NOREN_NAMESPACE) and what Kubernetes puts there for a Service whose name begins with "noren"
/// (NOREN_SERVICE_HOST, NOREN_PORT_...).
Environment read_environment(const char* const* variables);

}  // namespace noren::config
