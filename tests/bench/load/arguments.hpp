#pragma once
// The little languages of the command line. All throw std::invalid_argument saying what was expected and
// found.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/load/options.hpp"

namespace load {

/// "64" or "16:256"; at least 1, least <= most.
Range parse_range(const std::string& text);
/// "250ms", "10s", "2m", "1.5s"; 0 only as "0s" and the like.
std::chrono::milliseconds parse_duration(const std::string& text);
/// "4:5s,16:5s": clients and time.
std::vector<Stage> parse_stages(const std::string& text);
/// "Name: value"; not one of those that noren-load sets itself.
std::string parse_header(const std::string& text);

}  // namespace load
