#include "proxy/request_id.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "proxy/http/hex.hpp"

namespace noren::proxy {

std::string request_id_of(const http::Fields& fields, std::mt19937_64& random) {
    const std::string_view given = fields.value("x-request-id");
    const bool usable = !given.empty() && given.size() <= 128 &&
                        std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (usable) return std::string(given);
    constexpr std::size_t k_size = 32, k_digits_of_one = 16;
    std::string id(k_size, '0');
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < k_size; ++i, bits >>= 4) {
        if (i % k_digits_of_one == 0) bits = random();
        id[i] = http::k_hex_digits[bits & 15];
    }
    return id;
}

}  // namespace noren::proxy
