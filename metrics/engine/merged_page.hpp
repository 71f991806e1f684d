#pragma once
// noren's own page with the engine's behind it, as one page that a Prometheus takes.

#include <optional>
#include <string>
#include <string_view>

namespace noren::metrics::engine {

/// Appends what of the engine's page fits behind own, a page in itself: whole families, as they stand there,
/// without those whose name is taken (process_* and the like: own stays), without a family's second coming,
/// and without lines that are no text format. add_to_waiting: on top of the engine's first count of waiting
/// requests, if it is an engine we know.
void append_page(std::string& own, std::string_view page, std::optional<double> add_to_waiting = {});

}  // namespace noren::metrics::engine
