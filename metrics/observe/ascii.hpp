#pragma once
// Words that compare without regard to case, as those of HTTP do: ASCII, whatever the locale.

#include <algorithm>
#include <string_view>

namespace noren::metrics {

constexpr char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

constexpr bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return to_lower(x) == to_lower(y); });
}

}  // namespace noren::metrics
