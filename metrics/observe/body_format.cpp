#include "metrics/observe/body_format.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "metrics/observe/ascii.hpp"

namespace noren::metrics {
namespace {

/// Without parameters and the blanks around it.
std::string_view media_type(std::string_view content_type) {
    constexpr std::string_view k_blanks = " \t";
    std::string_view type = content_type.substr(0, content_type.find(';'));
    type = type.substr(0, type.find_last_not_of(k_blanks) + 1);
    type.remove_prefix(std::min(type.size(), type.find_first_not_of(k_blanks)));
    return type;
}

/// The last so many bytes, or all.
std::string_view ending(std::string_view text, std::size_t size) {
    return text.substr(text.size() - std::min(size, text.size()));
}

}  // namespace

BodyFormat format_of(std::string_view content_type) {
    constexpr std::string_view k_json_suffix = "+json";  // RFC 6839
    constexpr std::array<std::string_view, 4> k_ndjson = {"application/x-ndjson", "application/ndjson",
                                                          "application/jsonl", "application/x-jsonlines"};
    const std::string_view type = media_type(content_type);
    const auto is = [&](std::string_view known) { return same_word(type, known); };
    if (is("text/event-stream")) return BodyFormat::sse;
    if (std::any_of(k_ndjson.begin(), k_ndjson.end(), is)) return BodyFormat::ndjson;
    const bool is_json =
        is("application/json") || same_word(ending(type, k_json_suffix.size()), k_json_suffix);
    return is_json ? BodyFormat::json : BodyFormat::opaque;
}

}  // namespace noren::metrics
