#pragma once
// The engines' many words for why generation ended, folded into the few that a label may have.

#include <cstddef>
#include <optional>
#include <string_view>

namespace noren::metrics {

/// Index into k_finish_reasons: that of "none" without a word, of "other" for one of no known dialect.
std::size_t finish_reason_index(std::optional<std::string_view> word);

}  // namespace noren::metrics
