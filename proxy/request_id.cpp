#include "proxy/request_id.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace noren::proxy {

std::string request_id_of(const http::Fields& fields, std::mt19937_64& random) {
    const std::string_view given = fields.value("x-request-id");
    const bool usable = !given.empty() && given.size() <= 128 &&
                        std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (usable) return std::string(given);
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(random()),
                  static_cast<unsigned long long>(random()));
    return std::string(text.data(), 32);
}

}  // namespace noren::proxy
