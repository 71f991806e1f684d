#pragma once
// A configuration file to a Config, or to the list of everything that is wrong with it.
// Nothing here throws or crashes, whatever the input.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/mistake.hpp"

namespace noren::config {

/// Where a key got its value.
struct Origin {
    std::string source;  ///< file, flag or variable, as in Mistake::file
    int line = 0;        ///< 0 = not from a file

    bool operator==(const Origin&) const = default;
};

/// Key path to origin, for every key that is not at its default by omission.
using Origins = std::map<std::string, Origin, std::less<>>;

struct LoadResult {
    std::optional<Config> config;   ///< set exactly if there are no mistakes
    std::vector<Mistake> mistakes;  ///< those of the file in the order of its lines; at most 101
    Origins origins;

    bool ok() const { return config.has_value(); }
    /// About the value of a key, at the place it comes from. The config is the caller's to take away.
    void add_mistake(std::string_view key, std::string found, std::string expected);
};

/// An empty file is a valid one: everything at its default.
LoadResult load_file(const std::string& path);

/// `name` is what mistakes call the text.
LoadResult load_text(std::string_view text, std::string_view name);

}  // namespace noren::config
