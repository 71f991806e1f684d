#include "metrics/sampled.hpp"

namespace noren::metrics {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<MetricFamily> Sampled::Collect() const {
    MetricFamily family;
    family.name = name_;
    family.help = help_;
    family.type = type_;
    for (const LabelledReading& reading : readings_) {
        const std::optional<double> value = reading.read();
        if (!value) continue;
        prometheus::ClientMetric metric;
        metric.label = reading.labels;
        (type_ == MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
        family.metric.push_back(metric);
    }
    if (family.metric.empty()) return {};
    return {family};
}

}  // namespace noren::metrics
