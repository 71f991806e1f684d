#pragma once

#include <string_view>

namespace noren::proxy::http {

/// By their values, as noren writes them.
inline constexpr std::string_view k_hex_digits = "0123456789abcdef";

/// The value of a hexadecimal digit; -1 if it is none.
constexpr int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace noren::proxy::http
