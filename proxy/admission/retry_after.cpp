#include "proxy/admission/retry_after.hpp"

#include <algorithm>
#include <cmath>

namespace noren::proxy::admission {

void RetryAfter::observe(std::chrono::duration<double> service_time) {
    // An eighth of each new value, as in TCP's RTT estimate (RFC 6298): some tens of requests follow a
    // change.
    constexpr double k_weight = 0.125;
    double mean = mean_service_.load(std::memory_order_relaxed);
    double next = 0;
    do {
        next = mean == 0.0 ? service_time.count() : mean + k_weight * (service_time.count() - mean);
    } while (!mean_service_.compare_exchange_weak(mean, next, std::memory_order_relaxed));
}

std::uint32_t RetryAfter::seconds(std::uint32_t waiting, std::uint32_t cap, double jitter,
                                  std::chrono::duration<double> not_before) const {
    const double mean = mean_service_.load(std::memory_order_relaxed);
    const double places = std::max(1u, cap);
    const double wait = mean * (static_cast<double>(waiting) + 1.0) / places;
    const double spread = std::max(wait, not_before.count()) * (0.75 + 0.5 * jitter);
    return static_cast<std::uint32_t>(std::clamp(std::ceil(spread), 1.0, 60.0));
}

}  // namespace noren::proxy::admission
