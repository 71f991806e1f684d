#pragma once
// What is known of the engine's health, between the probe, which finds out, and all who ask.

#include <atomic>
#include <optional>
#include <utility>

#include "proxy/net/wakeup.hpp"

namespace noren::proxy::upstream {

class EngineHealth {
  public:
    // --- any thread
    /// As the last probe found it.
    bool up() const noexcept { return up_.load(); }

    /// A dial has just found nobody listening. That decides nothing, but the probe looks now, not when its
    /// interval is over. However many call, the probe is woken once between two looks.
    void doubt() noexcept {
        if (!up() || doubted() || doubted_.exchange(true)) return;
        if (probe_) probe_->post();
    }

    // --- for the probe
    /// While nobody else can call; none: no more.
    void wake_on_doubt(std::optional<net::Waker> probe) { probe_ = std::move(probe); }
    bool doubted() const noexcept { return doubted_.load(); }
    /// What is doubted from here on, the look may not have seen.
    void begin_look() noexcept { doubted_.store(false); }
    void set_up(bool up) noexcept { up_.store(up); }

  private:
    std::atomic<bool> up_{false};
    std::atomic<bool> doubted_{false};
    std::optional<net::Waker> probe_;
};

}  // namespace noren::proxy::upstream
