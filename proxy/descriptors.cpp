#include "proxy/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

namespace noren::proxy {
namespace {

// Listeners, loops and logs take some 10 and 4 a worker; the ops port takes up to 64 connections.
constexpr std::uint64_t k_own = 128;

/// Not for clients.
std::uint64_t kept(std::uint64_t descriptors, std::uint32_t max_concurrency) {
    const std::uint64_t half = descriptors / 2;
    return max_concurrency == 0 ? half : std::min(half, k_own + max_concurrency);
}

std::uint32_t narrowed(std::uint64_t count) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(count, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

std::uint64_t raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);  // refused: the soft limit stays, which descriptor_limit() tells
    }
    return descriptor_limit();
}

std::uint64_t descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::numeric_limits<std::uint64_t>::max();
    return limit.rlim_cur;
}

std::uint32_t connections_that_fit(std::uint64_t descriptors, std::uint32_t max_concurrency) {
    return narrowed(descriptors - kept(descriptors, max_concurrency));
}

std::uint32_t kept_for_engine(std::uint64_t descriptors, std::uint32_t max_concurrency) {
    const std::uint64_t all = kept(descriptors, max_concurrency);
    return narrowed(all - std::min(all, k_own - k_kept_without_permit));
}

}  // namespace noren::proxy
