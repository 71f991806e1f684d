#pragma once
// What a body is, by its media type alone.

#include <string_view>

namespace noren::metrics {

enum class BodyFormat : unsigned char { opaque, json, sse, ndjson };

/// content_type: the field's value as received; its parameters do not count. Empty is opaque.
BodyFormat format_of(std::string_view content_type);

}  // namespace noren::metrics
