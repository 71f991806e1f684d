#include "proxy/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

void make_descriptor_table(const config::Config& config) {
    constexpr std::uint64_t k_most = 65'536;
    const std::uint64_t clients = config.downstream.max_connections;
    const std::uint64_t cap = config.admission.max_concurrency;
    const std::uint64_t needed = k_own + clients + (cap == 0 ? clients : std::min(cap, clients));
    const std::uint64_t count = std::min({needed, k_most, descriptor_limit()});
    // The table is as long as its highest descriptor was.
    const int any = ::open("/", O_PATH | O_CLOEXEC);
    const int highest = any < 0 ? -1 : ::fcntl(any, F_DUPFD_CLOEXEC, static_cast<int>(count) - 1);
    if (highest >= 0) ::close(highest);
    if (any >= 0) ::close(any);
}

std::uint32_t connections_that_fit(std::uint64_t descriptors, std::uint32_t max_concurrency) {
    return narrowed(descriptors - kept(descriptors, max_concurrency));
}

std::uint32_t kept_for_engine(std::uint64_t descriptors, std::uint32_t max_concurrency) {
    const std::uint64_t all = kept(descriptors, max_concurrency);
    return narrowed(all - std::min(all, k_own - k_kept_without_permit));
}

}  // namespace noren::proxy
