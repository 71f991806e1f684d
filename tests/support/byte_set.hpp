#pragma once
// Sets of byte values, to say in a test which bytes a grammar allows in a place.

#include <bitset>
#include <cstddef>
#include <string_view>

namespace noren::test {

using ByteSet = std::bitset<256>;

inline ByteSet bytes_of(std::string_view bytes) {
    ByteSet set;
    for (const char c : bytes)
        set.set(static_cast<unsigned char>(c));
    return set;
}

/// Both ends included.
inline ByteSet bytes_between(std::size_t first, std::size_t last) {
    ByteSet set;
    for (std::size_t byte = first; byte <= last; ++byte)
        set.set(byte);
    return set;
}

}  // namespace noren::test
