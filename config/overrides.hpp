#pragma once
// The few keys one sets in a pod spec (`NOREN_*`) or tries by hand (flags), and the one call that puts a
// Config together from file, environment and flags. Flags beat environment beat file; for the concurrency
// limit, admission.max_concurrency_file beats all three.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.hpp"

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

/// Everything a Config comes from. Kept by main for the next reload.
struct Sources {
    Overrides environment;
    Overrides flags;

    /// The path of the file, if there is one.
    std::optional<std::string> file() const;
};

/// What admission.max_concurrency_file holds. The kubelet makes the file before the container starts and
/// leaves it blank while the pod has no such annotation, so one that is not there says nothing either. One
/// that cannot be read says nothing and is warned of.
struct LimitFile {
    std::string text;     ///< or why it cannot be read, so that a change of that is seen as well
    std::string warning;  ///< a sentence for the operator; empty if all is well
};
LimitFile read_limit_file(const std::string& path);

struct Resolved : LoadResult {
    // What was read, for FileWatcher to compare with; empty without a file.
    std::string file_text;
    LimitFile limit_file;
};

/// Reads the file (if any) and applies environment and flags.
Resolved load(const Sources& sources);

/// The same with a text of the file that was read already: what FileWatcher saw is what is loaded.
Resolved load(const Sources& sources, std::string file_text);

/// control.socket as these sources have it, whatever mistakes are elsewhere in them: a noren that runs can be
/// asked also while its file is broken. The default where there is nothing to be read.
std::string control_socket(const Sources& sources);

}  // namespace noren::config
