#pragma once
// The rhythm of a lone stream. Sans-IO.

#include <cstdint>
#include <random>
#include <string_view>

#include "tests/sim/scheduler.hpp"

namespace sim {

/// Just a first token and gaps: no batch, no queue. Measured from the moment the request body has been read;
/// token k is due at an absolute time, so lateness never adds up.
struct Pace {
    Duration ttft = std::chrono::milliseconds(200);
    Duration gap = std::chrono::milliseconds(20);  ///< between events; the mean if exponential; 0 = flood
    bool exponential = false;
};

/// The gaps of one stream: the same seed and request id give the same gaps, on every platform.
class GapSource {
  public:
    GapSource(const Pace& pace, std::uint64_t seed, std::string_view request_id);

    Duration next();

  private:
    Pace pace_;
    std::mt19937_64 random_;
};

}  // namespace sim
