#pragma once
// When a stream's token events came, and the gaps between them. Sans-IO.

#include <cstdint>
#include <optional>

#include "metrics/clock.hpp"

namespace noren::metrics {

class TokenClock {
  public:
    /// Gaps between token events, all of the same length.
    struct Gaps {
        std::uint32_t count = 0;
        double each = 0;  ///< seconds
    };

    /// events > 0 token events were complete with the read that ended at `at`; times must not go back. Calls
    /// with the same time are one read. The events of a read share the gap since the read before:
    /// gap/events, counted events times, so that no burst shows as a row of zeros. The first read has no gap.
    /// Returns the gaps of the read before, which is over with this one.
    Gaps on_events(std::uint32_t events, TimePoint at) noexcept;

    /// The stream is over, and so is its last read. Until then that is open to more events.
    Gaps settle() noexcept;

    std::uint64_t events() const { return events_; }
    std::optional<TimePoint> first() const { return events_ ? std::optional(first_) : std::nullopt; }
    TimePoint last() const { return last_; }

    /// Seconds per token after the first: (t_last - t_first)/(tokens - 1). Empty below 2 tokens, or if all
    /// came in one read: then the engine's speed cannot be seen from here.
    std::optional<double> time_per_output_token(std::int64_t tokens) const;

  private:
    TimePoint first_{}, last_{};
    std::uint64_t events_ = 0;
    Duration open_gap_{};            ///< between the last read and the one before it
    std::uint32_t open_events_ = 0;  ///< that share it; 0 if the last read was the first
};

}  // namespace noren::metrics
