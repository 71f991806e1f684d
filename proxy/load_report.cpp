#include "proxy/load_report.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace noren::proxy {
namespace {

constexpr std::string_view k_report = "endpoint-load-metrics";

/// Four digits behind the point at most: no reader wants more of a load.
std::string ratio(double value) {
    std::array<char, 32> text{};
    const auto [end, error] =
        std::to_chars(text.data(), text.data() + text.size(), std::round(value * 1e4) / 1e4);
    return {text.data(), end};
}

}  // namespace

std::optional<LoadFormat> load_format_asked(const http::Fields& request) {
    const std::string_view format = request.value("endpoint-load-metrics-format");
    if (http::same_name(format, "text")) return LoadFormat::text;
    if (http::same_name(format, "json")) return LoadFormat::json;
    return std::nullopt;
}

bool has_load_report(const http::Fields& answer) {
    return answer.has(k_report) || answer.has("endpoint-load-metrics-bin") ||
           answer.has("endpoint-load-metrics-json");
}

std::string load_report(const Load& load, LoadFormat format) {
    std::string utilization;
    if (load.limit != 0) utilization = ratio((static_cast<double>(load.running) + load.queued) / load.limit);
    const std::string queued = std::to_string(load.queued);
    const std::string running = std::to_string(load.running);
    if (format == LoadFormat::json) {
        std::string json = "JSON {";
        if (!utilization.empty())
            json.append("\"application_utilization\": ").append(utilization).append(", ");
        json.append("\"named_metrics\": {\"queued\": ").append(queued);
        return json.append(", \"running\": ").append(running).append("}}");
    }
    std::string text = "TEXT ";
    if (!utilization.empty()) text.append("application_utilization=").append(utilization).append(", ");
    text.append("named_metrics.queued=").append(queued);
    return text.append(", named_metrics.running=").append(running);
}

}  // namespace noren::proxy
