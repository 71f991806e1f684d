#pragma once
// When a refused client should come back: about when a place would be free for it, so that clients neither
// hammer a full engine nor leave a free one idle.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace noren::proxy::admission {

/// Thread-safe.
class RetryAfter {
  public:
    /// A permit was held for so long.
    void observe(std::chrono::duration<double> service_time);

    /// Seconds, 1..60, for one more request behind `waiting` others at `cap` places, of which none is free
    /// before `not_before`. jitter in [0, 1) spreads the answers by a quarter to both sides, so that those
    /// refused together do not return together.
    std::uint32_t seconds(std::uint32_t waiting, std::uint32_t cap, double jitter,
                          std::chrono::duration<double> not_before = {}) const;

  private:
    std::atomic<double> mean_service_{0.0};  ///< exponentially weighted; 0 = nothing seen yet
};

}  // namespace noren::proxy::admission
