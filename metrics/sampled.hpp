#pragma once
// Figures that are kept elsewhere and read when Prometheus asks.

#include <functional>
#include <optional>
#include <string>
#include <utility>
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

}  // namespace noren::metrics
