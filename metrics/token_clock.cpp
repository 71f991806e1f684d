#include "metrics/token_clock.hpp"

#include <utility>

namespace noren::metrics {

TokenClock::Gaps TokenClock::on_events(std::uint32_t events, TimePoint at) noexcept {
    if (events == 0) return {};
    Gaps before;
    if (events_ == 0) {
        first_ = at;
    } else if (at != last_) {
        before = settle();
        open_gap_ = at - last_;
        open_events_ = events;
    } else if (open_events_ > 0) {
        open_events_ += events;
    }
    last_ = at;
    events_ += events;
    return before;
}

TokenClock::Gaps TokenClock::settle() noexcept {
    const std::uint32_t count = std::exchange(open_events_, 0);
    return count == 0 ? Gaps{} : Gaps{count, seconds(open_gap_) / count};
}

std::optional<double> TokenClock::time_per_output_token(std::int64_t tokens) const {
    if (tokens < 2 || events_ == 0 || last_ <= first_) return std::nullopt;
    return seconds(last_ - first_) / static_cast<double>(tokens - 1);
}

}  // namespace noren::metrics
