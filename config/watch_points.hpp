#pragma once
// Which directories decide what a path means.

#include <string>
#include <vector>

namespace noren::config {

/// An entry of a directory which, if it changes, may change what the path leads to.
struct WatchPoint {
    std::string directory;
    std::string name;

    bool operator==(const WatchPoint&) const = default;
};

/// Follows `path` as the kernel would, over at most 40 symlinks, and notes each of them (a ConfigMap has two:
/// the file and `..data`) and where the way ends: the file itself, or the first entry that is missing.
std::vector<WatchPoint> watch_points(const std::string& path);

}  // namespace noren::config
