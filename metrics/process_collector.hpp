#pragma once
// What the kernel knows of this process.

#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

namespace noren::metrics {

/// The standard process_* family (Prometheus client library guidelines), from /proc/self.
class ProcessCollector final : public prometheus::Collectable {
  public:
    std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace noren::metrics
