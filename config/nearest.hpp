#pragma once
// "Did you mean ...?" for names that do not exist.

#include <span>
#include <string_view>

namespace noren::config {

/// The name most like `typed`, or empty if none is close. Case, `_` and `-` do not count; beyond that at most
/// one slip (a letter wrong, missing, extra, or two swapped) for every three letters.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> names);

}  // namespace noren::config
