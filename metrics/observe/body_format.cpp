#include "metrics/observe/body_format.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "metrics/observe/ascii.hpp"

namespace noren::metrics {
namespace {

/// In lower case, without parameters and the blanks around it.
std::string media_type(std::string_view content_type) {
    constexpr std::string_view k_blanks = " \t";
    std::string_view type = content_type.substr(0, content_type.find(';'));
    type = type.substr(0, type.find_last_not_of(k_blanks) + 1);
    type.remove_prefix(std::min(type.size(), type.find_first_not_of(k_blanks)));
    std::string lower(type);
    std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
    return lower;
}

}  // namespace

BodyFormat format_of(std::string_view content_type) {
    constexpr std::array<std::string_view, 4> k_ndjson = {"application/x-ndjson", "application/ndjson",
                                                          "application/jsonl", "application/x-jsonlines"};
    const std::string type = media_type(content_type);
    if (type == "text/event-stream") return BodyFormat::sse;
    if (std::find(k_ndjson.begin(), k_ndjson.end(), type) != k_ndjson.end()) return BodyFormat::ndjson;
    return type == "application/json" || type.ends_with("+json") ? BodyFormat::json : BodyFormat::opaque;
}

}  // namespace noren::metrics
