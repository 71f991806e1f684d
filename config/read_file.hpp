#pragma once
// The text of a configuration file, or in plain words why there is none.

#include <string>
#include <string_view>
#include <variant>

#include "config/mistake.hpp"

namespace noren::config {

/// What is found where there is nothing.
inline constexpr std::string_view k_no_such_file = "no such file";

/// Reads a regular file, opened anew by its path, and of it at most one byte more than parse_document
/// accepts. Never blocks on a pipe or device; never throws.
std::variant<std::string, Mistake> read_file(const std::string& path);

}  // namespace noren::config
