#include "metrics/exposition.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <string_view>

namespace noren::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::string_view name_of(MetricType type) {
    return type == MetricType::Counter ? "counter" : type == MetricType::Gauge ? "gauge" : "histogram";
}

void append_number(std::string& out, double value) {
    if (std::isnan(value)) {
        out.append("NaN");
    } else if (std::isinf(value)) {
        out.append(value > 0 ? "+Inf" : "-Inf");
    } else {
        // The shortest digits that mean this value.
        std::array<char, 32> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
        out.append(digits.data(), end.ptr);
    }
}

void append_number(std::string& out, std::uint64_t value) {
    std::array<char, 20> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
    out.append(digits.data(), end.ptr);
}

void append_escaped(std::string& out, std::string_view text) {
    for (const char c : text) {
        if (c == '\n') {
            out.append("\\n");
            continue;
        }
        if (c == '\\' || c == '"') out.push_back('\\');
        out.push_back(c);
    }
}

/// The labels of one series as `a="b",c="d"`, for all of its lines.
std::string written(const std::vector<ClientMetric::Label>& labels) {
    std::string out;
    for (const ClientMetric::Label& label : labels) {
        if (!out.empty()) out.push_back(',');
        out.append(label.name).append("=\"");
        append_escaped(out, label.value);
        out.push_back('"');
    }
    return out;
}

template <typename Number>
void append_line(std::string& out, const std::string& name, std::string_view suffix,
                 const std::string& labels, Number value) {
    out.append(name).append(suffix);
    if (!labels.empty()) out.append("{").append(labels).append("}");
    out.push_back(' ');
    append_number(out, value);
    out.push_back('\n');
}

void append_histogram(std::string& out, const std::string& name, const std::string& labels,
                      const ClientMetric::Histogram& histogram) {
    append_line(out, name, "_count", labels, histogram.sample_count);
    append_line(out, name, "_sum", labels, histogram.sample_sum);
    for (const ClientMetric::Bucket& bucket : histogram.bucket) {
        out.append(name).append("_bucket{").append(labels).append(labels.empty() ? "le=\"" : ",le=\"");
        append_number(out, bucket.upper_bound);
        out.append("\"} ");
        append_number(out, bucket.cumulative_count);
        out.push_back('\n');
    }
}

}  // namespace

void append_exposition(std::string& out, const std::vector<MetricFamily>& families) {
    for (const MetricFamily& family : families) {
        out.append("# HELP ").append(family.name).append(" ").append(family.help).append("\n");
        out.append("# TYPE ").append(family.name).append(" ").append(name_of(family.type)).append("\n");
        for (const ClientMetric& metric : family.metric) {
            const std::string labels = written(metric.label);
            if (family.type == MetricType::Histogram) {
                append_histogram(out, family.name, labels, metric.histogram);
            } else {
                const bool is_counter = family.type == MetricType::Counter;
                append_line(out, family.name, "", labels,
                            is_counter ? metric.counter.value : metric.gauge.value);
            }
        }
    }
}

}  // namespace noren::metrics
