#pragma once
// A run's results as a table for people and as JSON for programs.

#include <iosfwd>
#include <string>
#include <vector>

#include "tests/bench/load/options.hpp"
#include "tests/bench/load/runner.hpp"

namespace load {

/// One column per url, or per stage where there are several.
void print_table(const Options& options, const Outcome& outcome, std::ostream& out);
std::string to_json(const Options& options, const Outcome& outcome);
/// One JSON line per request.
void write_per_request(const Outcome& outcome, std::ostream& out);

}  // namespace load
