#pragma once
// Text that came from somewhere, made fit for JSON.

#include <cstddef>
#include <string>
#include <string_view>

namespace noren::metrics {

/// The sequence at the front of a non-empty text.
struct Utf8Step {
    std::size_t size = 1;  ///< bytes it takes
    bool valid = false;    ///< well-formed (RFC 3629)
};

/// An ill-formed sequence takes its longest well-formed beginning, so that one U+FFFD stands for it
/// (Unicode 15.0, section 3.9, "substitution of maximal subparts").
Utf8Step utf8_step(std::string_view text);

/// The same with U+FFFD in place of what is not UTF-8.
std::string to_valid_utf8(std::string_view text);

}  // namespace noren::metrics
