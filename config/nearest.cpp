#include "config/nearest.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "config/ascii.hpp"

namespace noren::config {

namespace {

constexpr std::size_t k_longest_name = 64;  // nothing longer is one of ours with a slip in it

std::string letters(std::string_view name) {
    std::string out;
    for (const char c : name) {
        if (c != '_' && c != '-') out += to_lower(c);
    }
    return out;
}

/// Slips between two words: Damerau-Levenshtein, optimal string alignment.
std::size_t slips(std::string_view a, std::string_view b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i)
        d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j)
        d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t wrong = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + wrong});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest(std::string_view typed, std::span<const std::string_view> names) {
    if (typed.size() > k_longest_name) return {};
    const std::string wanted = letters(typed);
    std::string_view best;
    std::size_t fewest = wanted.size() / 3 + 1;
    for (const std::string_view name : names) {
        const std::size_t distance = slips(wanted, letters(name));
        if (distance < fewest) {
            fewest = distance;
            best = name;
        }
    }
    return best;
}

}  // namespace noren::config
