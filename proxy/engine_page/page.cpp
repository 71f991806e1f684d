#include "proxy/engine_page/page.hpp"

#include <array>
#include <cstddef>

namespace noren::proxy::engine_page {

std::string_view word_of(Ending ending) {
    constexpr std::array<std::string_view, 7> k_words = {"ok",   "unreachable", "tls",      "broken",
                                                         "late", "malformed",   "too_large"};
    return k_words[static_cast<std::size_t>(ending)];
}

}  // namespace noren::proxy::engine_page
