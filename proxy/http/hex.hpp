#pragma once

namespace noren::proxy::http {

/// The value of a hexadecimal digit; -1 if it is none.
constexpr int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace noren::proxy::http
