#pragma once
// Most events of a stream are the same but for the text they carry: what is known of one is known of all.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/observe/json_sieve.hpp"

namespace noren::metrics {

/// The fixed parts of a JSON document, and where the others are. A token event that fits is recognised with
/// a few comparisons instead of being parsed.
class EventPattern {
  public:
    /// This document would be understood in the same way as the one that was learnt.
    bool matches(std::string_view document);

    /// Is another pattern worth its memory? Not for the one odd event among many of a kind, and not for ever
    /// if no two events are of a kind.
    bool wants_another() const { return !known_ || (misses_ >= 2 && fruitless_ < 4); }
    void learn(std::string_view document, std::span<const LooseValue> loose);
    void prefetch() const noexcept;

  private:
    struct Gap {
        std::uint16_t fixed;  ///< bytes between the gap before and this one
        LooseValue::Kind kind;
    };
    bool fits(std::string_view document) const;

    bool known_ = false;
    std::string fixed_;  ///< all that is not in gaps
    std::vector<Gap> gaps_;
    std::uint8_t misses_ = 0;     ///< in a row
    std::uint8_t fruitless_ = 0;  ///< patterns in a row that nothing fitted
};

}  // namespace noren::metrics
