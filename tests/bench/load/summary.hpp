#pragma once
// What many requests came to together.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/load/histogram.hpp"
#include "tests/bench/load/result.hpp"

namespace load {

/// Exact: keeps every sample.
class Samples {
  public:
    void add(double value);
    bool empty() const { return values_.empty(); }
    std::size_t count() const { return values_.size(); }
    double mean() const;
    double least() const { return quantile(0); }
    double most() const { return quantile(1); }
    /// Nearest rank, q in [0, 1]. Of nothing: 0.
    double quantile(double q) const;

  private:
    mutable std::vector<double> values_;
    mutable bool sorted_ = true;
};

/// Latencies and rates are of answers that were whole; slow readers are left out of them, as they measure
/// themselves.
struct Summary {
    std::uint64_t requests = 0, ok = 0, checked = 0, body_checked = 0, refused = 0, failed = 0, left = 0,
                  slow = 0, retried = 0;
    std::uint64_t tokens = 0, good_tokens = 0;  ///< received at all; in whole answers
    std::uint64_t body_bytes = 0;
    std::uint64_t bytes_altered = 0, bytes_lost = 0, bytes_extra = 0;
    double seconds = 0;            ///< from the first start to the last end
    Samples ttft, tpot, tps, e2e;  ///< seconds; tps: tokens per second
    Samples retry_after;           ///< seconds, of refusals that have it
    Histogram itl;                 ///< gaps between token events, of all streams
    Histogram delay;               ///< from the engine's write to our read, of stamped token events
    std::map<int, std::uint64_t> statuses;
    std::map<std::string, std::uint64_t> errors;   ///< kind -> how many
    std::map<std::string, std::string> details;    ///< kind -> of the first such error
    std::map<std::string, std::uint64_t> reasons;  ///< x-noren-reason

    double per_second(std::uint64_t amount) const {
        return seconds > 0 ? static_cast<double>(amount) / seconds : 0;
    }
};

/// itl and delay are left for the caller to fill: results do not hold their gaps.
Summary summarise(const std::vector<const Result*>& results);

}  // namespace load
