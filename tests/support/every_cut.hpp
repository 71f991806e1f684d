#pragma once
// A text cut in every way that can matter to a reader who gets it in pieces.

#include <cstddef>
#include <string_view>
#include <vector>

namespace noren::test {

/// Calls check(pieces) with the text in three pieces, some of them empty, cut at all pairs of places, and
/// byte by byte.
template <typename Check>
void for_every_cut(std::string_view text, Check&& check) {
    for (std::size_t a = 0; a <= text.size(); ++a)
        for (std::size_t b = a; b <= text.size(); ++b)
            check(std::vector<std::string_view>{text.substr(0, a), text.substr(a, b - a), text.substr(b)});
    std::vector<std::string_view> bytewise;
    for (std::size_t i = 0; i < text.size(); ++i)
        bytewise.push_back(text.substr(i, 1));
    check(bytewise);
}

}  // namespace noren::test
