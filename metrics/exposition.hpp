#pragma once
// Metrics as text that Prometheus reads (format 0.0.4).

#include <string>
#include <vector>

#include <prometheus/metric_family.h>

namespace noren::metrics {

/// Appends counters, gauges and histograms. A full registry is a megabyte; the library's own serializer
/// writes it through iostreams, which takes ten times as long.
void append_exposition(std::string& out, const std::vector<prometheus::MetricFamily>& families);

}  // namespace noren::metrics
