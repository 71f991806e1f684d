#pragma once
// The one call that puts a Config together, from a file, NOREN_* variables and flags, or lists everything
// that is wrong with them. Flags beat variables beat the file; for the concurrency limit,
// admission.max_concurrency_file beats all three. Nothing here throws, whatever the input.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/mistake.hpp"
#include "config/overrides.hpp"

namespace noren::config {

/// Where a key got its value.
struct Origin {
    std::string source;  ///< file, flag or variable, as in Mistake::file
    int line = 0;        ///< 0 = not from a file

    bool operator==(const Origin&) const = default;
};

/// Key path to origin, for every key that is not at its default by omission.
using Origins = std::map<std::string, Origin, std::less<>>;

/// A key that the file sets in vain: whatever it says there, something stronger has the say.
struct Overruled {
    Origin in_file;
    std::string key;
    std::string by;  ///< flag, variable or the path of admission.max_concurrency_file

    bool operator==(const Overruled&) const = default;
    /// "noren.yaml:3: admission.max_queue is not in force: --max-queue is stronger"
    std::string to_string() const;
};

struct LoadResult {
    std::optional<Config> config;   ///< set exactly if there are no mistakes
    std::vector<Mistake> mistakes;  ///< those of the file in the order of its lines; at most 101
    Origins origins;
    std::vector<Overruled> overruled;  ///< in the order of the keys' names

    bool ok() const { return config.has_value(); }
    /// About the value of a key, at the place it comes from. The config is the caller's to take away.
    void add_mistake(std::string_view key, std::string found, std::string expected);
};

/// Everything a Config comes from. Kept for the next reload.
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

/// A Config and the texts it was read from, for FileWatcher to compare with; empty where there is no file.
struct Resolved : LoadResult {
    std::string file_text;
    LimitFile limit_file;
};

/// Nothing but blanks, comments and document marks: good, and perhaps not what was meant.
bool says_nothing(std::string_view yaml);
inline constexpr const char* k_empty_file = "the config file is empty: every key is at its default";

/// Reads the file (if any) and applies environment and flags. An empty file is a valid one: everything at its
/// default.
Resolved load(const Sources& sources);

/// The same with a text of the file that was read already: what FileWatcher saw is what is loaded.
Resolved load(const Sources& sources, std::string file_text);

/// A file's text alone. `name` is what mistakes call it.
LoadResult load_text(std::string_view text, std::string_view name);

/// control.socket as these sources have it, whatever mistakes are elsewhere in them: a noren that runs can be
/// asked also while its file is broken. The default where there is nothing to be read.
std::string control_socket(const Sources& sources);

}  // namespace noren::config
