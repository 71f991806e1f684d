#include "metrics/token_clock.hpp"

#include <algorithm>

namespace noren::metrics {
namespace {

/// buckets::itl() as an array, so that finding a bin needs no vector.
const std::array<double, k_itl_bounds>& itl_bounds() {
    static const std::array<double, k_itl_bounds> bounds = [] {
        std::array<double, k_itl_bounds> copy{};
        const Buckets all = buckets::itl();
        std::copy_n(all.begin(), copy.size(), copy.begin());
        return copy;
    }();
    return bounds;
}

}  // namespace

void TokenClock::on_events(std::uint32_t events, TimePoint at) noexcept {
    if (events == 0) return;
    if (events_ == 0) {
        first_ = at;
    } else if (at != last_) {
        settle();
        open_gap_ = at - last_;
        open_events_ = events;
    } else if (open_events_ > 0) {
        open_events_ += events;
    }
    last_ = at;
    events_ += events;
}

void TokenClock::settle() noexcept {
    if (open_events_ == 0) return;
    const double gap = seconds(open_gap_) / open_events_;
    const auto& bounds = itl_bounds();
    const auto bin = std::lower_bound(bounds.begin(), bounds.end(), gap) - bounds.begin();
    bins_.counts[static_cast<std::size_t>(bin)] += open_events_;
    bins_.sum += seconds(open_gap_);
    if (bins_.total == 0) oldest_ = last_;
    bins_.total += open_events_;
    open_events_ = 0;
}

std::optional<double> TokenClock::time_per_output_token(std::int64_t tokens) const {
    if (tokens < 2 || events_ == 0 || last_ <= first_) return std::nullopt;
    return seconds(last_ - first_) / static_cast<double>(tokens - 1);
}

}  // namespace noren::metrics
