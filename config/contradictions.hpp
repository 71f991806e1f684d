#pragma once
// What is wrong although every value for itself is right.

#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"

namespace noren::config {

struct Contradiction {
    std::vector<std::string_view> keys;  ///< paths of the keys that do not agree; the one to blame first
    std::string found;
    std::string expected;
};

/// None for the defaults.
std::vector<Contradiction> find_contradictions(const Config& config);

}  // namespace noren::config
