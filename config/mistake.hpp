#pragma once
// One thing that is wrong with the configuration, told so that it can be mended without a manual.

#include <string>

namespace noren::config {

struct Mistake {
    std::string file;   ///< as the user named it; or the flag (`--workers`) or variable (`NOREN_WORKERS`)
    int line = 0;       ///< from 1; 0 = not about a line
    std::string key;    ///< `admission.max_queue`; empty = about the whole file
    std::string found;  ///< secrets in URLs are masked
    std::string expected;

    /// `noren.yaml:7: admission.max_queue: found "many", expected a whole number from 0 to 1000000`
    std::string to_string() const;

    bool operator==(const Mistake&) const = default;
};

}  // namespace noren::config
