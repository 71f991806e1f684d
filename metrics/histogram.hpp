#pragma once
// A histogram that is observed without a lock, so that a worker with a token in its hands never waits for a
// scrape: prometheus::Histogram holds a mutex while it is read, and who reads may be suspended.

#include <atomic>
#include <cstdint>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>

namespace noren::metrics {

using Buckets = std::vector<double>;

/// Named like the library's own, whose counters and gauges are used as they are. Thread-safe.
class Histogram {
  public:
    static constexpr prometheus::MetricType metric_type = prometheus::MetricType::Histogram;

    /// bounds: increasing; a value belongs to the first that is not below it, or to a last bucket.
    explicit Histogram(Buckets bounds);

    /// times: so many observations of the same value.
    void Observe(double value, std::uint64_t times = 1);

    /// An observation that is made meanwhile may be in the buckets and not in the sum yet. The buckets always
    /// add up to the count.
    prometheus::ClientMetric Collect() const;

  private:
    const Buckets bounds_;
    std::vector<std::atomic<std::uint64_t>> counts_;  ///< one more than bounds
    std::atomic<double> sum_{0};
};

}  // namespace noren::metrics
