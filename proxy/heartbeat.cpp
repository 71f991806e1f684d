#include "proxy/heartbeat.hpp"

#include <utility>

namespace noren::proxy {

Heartbeat::Heartbeat(asio::io_context& io, std::size_t workers, Post post, OnChange on_change,
                     const HeartbeatLimits& limits)
    : timer_(io),
      pulses_(workers),
      post_(std::move(post)),
      on_change_(std::move(on_change)),
      limits_(limits) {}

void Heartbeat::start() {
    beat();
}

void Heartbeat::beat() {
    for (std::size_t worker = 0; worker < pulses_.size(); ++worker) {
        Pulse& pulse = pulses_[worker];
        const bool was_stuck = is_stuck(pulse);
        if (pulse.answered.exchange(false)) {
            pulse.missed = 0;
            post_(worker, pulse);
        } else {
            ++pulse.missed;
        }
        if (is_stuck(pulse) != was_stuck) on_change_(worker, !was_stuck);
    }
    timer_.expires_after(limits_.interval);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error) beat();
    });
}

std::string Heartbeat::complaint() const {
    std::string text;
    for (std::size_t worker = 0; worker < pulses_.size(); ++worker) {
        if (!is_stuck(pulses_[worker])) continue;
        const auto silent =
            std::chrono::duration_cast<std::chrono::seconds>(limits_.interval * pulses_[worker].missed);
        text.append(text.empty() ? "" : "; ")
            .append("worker " + std::to_string(worker) + " has not turned for ")
            .append(std::to_string(silent.count()) + " s");
    }
    return text;
}

}  // namespace noren::proxy
