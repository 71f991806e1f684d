#pragma once
// The one clock of all stamps: monotonic, so that a wall-clock step never makes a negative latency.

#include <chrono>

namespace noren::metrics {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

inline double seconds(Duration d) {
    return std::chrono::duration<double>(d).count();
}

}  // namespace noren::metrics
