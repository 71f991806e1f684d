#include "metrics/histogram.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace noren::metrics {

Histogram::Histogram(Buckets bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::Observe(double value, std::uint64_t times) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    counts_[static_cast<std::size_t>(bucket)].fetch_add(times, std::memory_order_relaxed);
    sum_.fetch_add(value * static_cast<double>(times), std::memory_order_relaxed);
}

prometheus::ClientMetric Histogram::Collect() const {
    prometheus::ClientMetric metric;
    std::uint64_t cumulative = 0;
    metric.histogram.bucket.reserve(counts_.size());
    for (std::size_t i = 0; i < counts_.size(); ++i) {
        cumulative += counts_[i].load(std::memory_order_relaxed);
        const double bound = i < bounds_.size() ? bounds_[i] : std::numeric_limits<double>::infinity();
        metric.histogram.bucket.push_back({cumulative, bound});
    }
    metric.histogram.sample_count = cumulative;
    metric.histogram.sample_sum = sum_.load(std::memory_order_relaxed);
    return metric;
}

}  // namespace noren::metrics
