#pragma once
// What a reload changes: for the log, and to know what only a restart can bring.

#include <string>
#include <vector>

#include "config/config.hpp"

namespace noren::config {

struct Change {
    std::string key;
    std::string from;  ///< as in a file; user and password in URLs are masked
    std::string to;
    bool restart_required = false;  ///< the running process keeps `from` until it is restarted

    /// `admission.max_queue: 512 -> 64`, with ` (restart needed)` where it is.
    std::string to_string() const;

    bool operator==(const Change&) const = default;
};

/// In the order of the keys; empty if nothing differs.
std::vector<Change> diff(const Config& from, const Config& to);

/// `to`, with the keys that need a restart kept as they are in `running`: what a live reload puts in force.
Config apply_live(const Config& running, const Config& to);

}  // namespace noren::config
