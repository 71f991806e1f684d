#pragma once
// When a stream's token events came, and the gaps between them. Sans-IO; plain bins per stream, so that the
// shared histogram is locked once for many tokens.

#include <array>
#include <cstdint>
#include <optional>

#include "metrics/catalogue.hpp"
#include "metrics/clock.hpp"

namespace noren::metrics {

class TokenClock {
  public:
    /// Gaps not yet handed on, in the shape of buckets::itl() with a last bin for all beyond.
    struct Bins {
        std::array<std::uint32_t, k_itl_bounds + 1> counts{};
        double sum = 0;  ///< seconds
        std::uint32_t total = 0;
    };

    /// events > 0 token events were complete with the read that ended at `at`; times must not go back. Calls
    /// with the same time are one read. The events of a read share the gap since the read before:
    /// gap/events, counted events times, so that no burst shows as a row of zeros. The first read has no gap.
    void on_events(std::uint32_t events, TimePoint at) noexcept;

    /// The stream is over: the last read's gap goes into the bins too. Until then it is open to more events.
    void settle() noexcept;

    std::uint64_t events() const { return events_; }
    std::optional<TimePoint> first() const { return events_ ? std::optional(first_) : std::nullopt; }
    TimePoint last() const { return last_; }

    /// True when the bins should be handed on: 64 gaps are in them, or the oldest is a second old.
    bool flush_due() const {
        return bins_.total >= 64 || (bins_.total > 0 && last_ - oldest_ >= std::chrono::seconds(1));
    }
    const Bins& bins() const { return bins_; }
    void clear_bins() { bins_ = {}; }

    /// Seconds per token after the first: (t_last - t_first)/(tokens - 1). Empty below 2 tokens, or if all
    /// came in one read: then the engine's speed cannot be seen from here.
    std::optional<double> time_per_output_token(std::int64_t tokens) const;

  private:
    TimePoint first_{}, last_{}, oldest_{};
    std::uint64_t events_ = 0;
    Duration open_gap_{};            ///< between the last read and the one before it
    std::uint32_t open_events_ = 0;  ///< that share it; 0 if the last read was the first
    Bins bins_;
};

}  // namespace noren::metrics
