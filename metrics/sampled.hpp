#pragma once
// Figures that exist elsewhere and are read when Prometheus asks: gauges of the proxy, and /proc/self.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

namespace noren::metrics {

struct LabelledReading {
    std::vector<prometheus::ClientMetric::Label> labels;
    std::function<std::optional<double>()> read;
};

/// One family of gauges or counters whose values are asked for at each scrape, so that none can be stale.
class Sampled final : public prometheus::Collectable {
  public:
    Sampled(prometheus::MetricType type, std::string name, std::string help,
            std::vector<LabelledReading> readings)
        : type_(type), name_(std::move(name)), help_(std::move(help)), readings_(std::move(readings)) {}

    std::vector<prometheus::MetricFamily> Collect() const override;

  private:
    prometheus::MetricType type_;
    std::string name_, help_;
    std::vector<LabelledReading> readings_;
};

/// The standard process_* family (Prometheus client library guidelines), from /proc/self.
class ProcessCollector final : public prometheus::Collectable {
  public:
    std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace noren::metrics
