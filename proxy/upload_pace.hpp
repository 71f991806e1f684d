#pragma once
// Whether a request's body comes fast enough: every window must bring its share, so that thousands of bodies
// of one byte now and then cannot hold connections and memory for as long as they like.

#include <chrono>
#include <cstdint>
#include <optional>

#include "metrics/clock.hpp"
#include "proxy/net/loop.hpp"

namespace noren::proxy {

/// Bytes and times in, a deadline out.
class UploadPace {
  public:
    /// bytes_per_second: 0 = any pace will do.
    UploadPace(std::uint64_t bytes_per_second, std::chrono::milliseconds window)
        : window_(window),
          share_((bytes_per_second * static_cast<std::uint64_t>(window.count()) + 999) / 1'000) {}

    /// taken: of the body so far. Once a window's share has come, the next begins: a burst is no credit for
    /// later.
    void took(std::uint64_t taken, metrics::TimePoint now) {
        if (began_ && taken - taken_then_ < share_) return;
        began_ = now;
        taken_then_ = taken;
    }
    /// Nobody waits for the client: no window runs until it has taken more.
    void rest() { began_.reset(); }

    /// When the share of this window is late.
    metrics::TimePoint due() const { return share_ == 0 || !began_ ? net::k_never : *began_ + window_; }

  private:
    const std::chrono::milliseconds window_;
    const std::uint64_t share_;
    std::optional<metrics::TimePoint> began_;
    std::uint64_t taken_then_ = 0;
};

}  // namespace noren::proxy
