#pragma once
// What a noren-sim must have generated, and how a text received differs from it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/load/api.hpp"

namespace load {

/// How `got` differs from `expected`, in bytes. One hole or one surplus piece is told as such; anything else
/// is told as altered.
struct TextCheck {
    std::uint64_t at = 0;  ///< the first byte that differs
    std::uint64_t altered = 0, lost = 0, extra = 0;

    bool same() const { return altered + lost + extra == 0; }
    /// "3 bytes lost at byte 17", "" if the same.
    std::string words() const;
};

TextCheck compare(std::string_view expected, std::string_view got);

/// The simulator's deterministic text for our requests. It follows from the request id and from what our
/// x-sim-* request headers ask for.
class SimText {
  public:
    SimText(Api api, const std::vector<std::string>& header_lines);

    /// Checks all choices of one answer and tells the worst. `reported`: output tokens of all choices, if the
    /// answer said; else `asked` (the request's max_tokens) tells how long the text must be, if it can.
    TextCheck check(std::string_view id, const std::map<std::uint32_t, std::string>& texts,
                    std::optional<std::uint64_t> reported, std::optional<std::uint32_t> asked) const;

  private:
    std::string text_of(std::string_view id, std::uint32_t choice, std::uint32_t tokens) const;

    std::optional<std::uint32_t> tokens_;  ///< x-sim-tokens
    std::uint32_t per_event_ = 1;          ///< x-sim-tokens-per-event
    std::uint32_t bytes_ = 0;              ///< x-sim-bytes
};

}  // namespace load
