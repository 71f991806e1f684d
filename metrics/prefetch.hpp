#pragma once
// What a stream needs is cold after the pause between two of its tokens: thousands of others had the caches.
// Asked for before a system call, it is here when the call returns.

#include <cstddef>

namespace noren::metrics {

/// Nothing but time changes. object: may be anywhere, also nowhere.
inline void prefetch(const void* object, std::size_t size) noexcept {
    constexpr std::size_t k_cache_line = 64;
    for (std::size_t at = 0; at < size; at += k_cache_line)
        __builtin_prefetch(static_cast<const char*>(object) + at);
}

}  // namespace noren::metrics
