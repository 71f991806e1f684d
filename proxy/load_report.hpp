#pragma once
// How full noren is, in a header field of an answer, for load balancers that speak ORCA (Open Request Cost
// Aggregation): `endpoint-load-metrics`.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/head.hpp"

namespace noren::proxy {

enum class LoadFormat : unsigned char { text, json };

/// What a request's endpoint-load-metrics-format asks for; empty: nothing, or a format that is not spoken
/// here.
std::optional<LoadFormat> load_format_asked(const http::Fields& request);

/// Whether an answer carries a report already. A second one makes readers throw both away.
bool has_load_report(const http::Fields& answer);

struct Load {
    std::uint32_t running = 0;
    std::uint32_t queued = 0;
    std::uint32_t limit = 0;  ///< 0 = unlimited: there is no utilization to tell then
};

/// The field's value. application_utilization is (running + queued) / limit: above 1, requests wait.
std::string load_report(const Load& load, LoadFormat format);

}  // namespace noren::proxy
