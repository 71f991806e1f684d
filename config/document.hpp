#pragma once
// YAML text to a Value tree. The only place that knows yaml-cpp, and the one that bounds what a hostile or
// broken file can cost: size, depth and number of nodes; aliases are refused, so nothing can expand.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

#include "config/mistake.hpp"
#include "config/value.hpp"

namespace noren::config {

/// Longest accepted configuration, in bytes: what a ConfigMap can hold.
inline constexpr std::size_t k_max_document = 1024 * 1024;

/// One YAML 1.2 document; an empty text is Kind::null. The first thing that makes the text unreadable comes
/// back as a Mistake with `file` and `key` empty. Never throws for any input.
std::variant<Value, Mistake> parse_document(std::string_view text);

}  // namespace noren::config
