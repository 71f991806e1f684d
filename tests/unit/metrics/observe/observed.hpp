#pragma once
// Bodies through a ResponseObserver, however they are cut.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/observe/response_observer.hpp"

namespace noren::metrics::testing {

inline constexpr std::string_view k_sse = "text/event-stream";
inline constexpr std::string_view k_ndjson = "application/x-ndjson";
inline constexpr std::string_view k_json = "application/json";

/// Whole; and that it is the same byte by byte and cut in two anywhere is part of every expectation.
Observation observed(std::string_view body, std::string_view content_type = k_sse, int status = 200);

/// Where the token events of a body end.
std::vector<std::uint64_t> token_ends(std::string_view body, std::string_view content_type = k_sse);

/// A chat event with this delta, to its blank line.
std::string chat(std::string_view delta);

}  // namespace noren::metrics::testing
