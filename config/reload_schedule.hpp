#pragma once
// When to look at the configuration file. Sans-IO: the caller owns the timer and gives the time.

#include <algorithm>
#include <chrono>
#include <optional>

namespace noren::config {

/// Between the last event and the look: an editor's save is several events.
inline constexpr std::chrono::milliseconds k_reload_debounce{150};

/// From the first event to the look at the latest, however many follow.
inline constexpr std::chrono::milliseconds k_reload_at_latest{250};

/// Between two looks without any event, for what inotify does not see (network mounts, no inotify at all).
inline constexpr std::chrono::milliseconds k_reload_poll{5'000};

/// Wait until next(), or for an event; call on_event() for one that may concern the file, and when is_due()
/// look at it and call on_look().
class ReloadSchedule {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;

    explicit ReloadSchedule(TimePoint now) : next_look_(now + k_reload_poll) {}

    void on_event(TimePoint now) {
        if (!first_event_) first_event_ = now;
        next_look_ = std::min(now + k_reload_debounce, *first_event_ + k_reload_at_latest);
    }

    void on_look(TimePoint now) {
        first_event_.reset();
        next_look_ = now + k_reload_poll;
    }

    TimePoint next() const { return next_look_; }
    bool is_due(TimePoint now) const { return now >= next_look_; }

  private:
    std::optional<TimePoint> first_event_;  ///< since the last look
    TimePoint next_look_;
};

}  // namespace noren::config
