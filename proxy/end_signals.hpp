#pragma once
// What a signal that asks a process to end means. Sans-IO: the caller gives the time.

#include <chrono>
#include <optional>

namespace noren::proxy {

/// The same signal again within this time is the first one once more: timeout(1) signals its child and then
/// the group the child is in, and a terminal's Ctrl-C reaches a wrapper and what it started.
inline constexpr std::chrono::milliseconds k_signal_echo{250};

class EndSignals {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;
    enum class Wish : unsigned char {
        drain_and_end,
        none,        ///< an echo of the first
        end_at_once  ///< asked a second time
    };

    Wish on_signal(int signal, TimePoint now) {
        if (!first_) {
            first_ = {signal, now};
            return Wish::drain_and_end;
        }
        const bool echo = signal == first_->signal && now - first_->at < k_signal_echo;
        return echo ? Wish::none : Wish::end_at_once;
    }

  private:
    struct Seen {
        int signal;
        TimePoint at;
    };
    std::optional<Seen> first_;
};

}  // namespace noren::proxy
