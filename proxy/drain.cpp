#include "proxy/drain.hpp"

#include <array>

namespace noren::proxy {

namespace {
// Short against any stream, and only while draining.
constexpr std::chrono::milliseconds k_look{20};
}  // namespace

void Drain::begin(const config::Drain& settings, std::chrono::milliseconds lame_duck) {
    const auto over = std::chrono::steady_clock::now() + lame_duck;
    const bool sooner = phase_ == Phase::lame_duck && over < timer_.expiry();
    if (phase_ != Phase::no && !sooner) return;
    if (!sooner) {
        settings_ = settings;
        phase_ = Phase::lame_duck;
        hooks_.lame_duck();
    }
    timer_.expires_at(over);
    // A drain that is called off may find its timer's call on the way already.
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error && phase_ == Phase::lame_duck) refuse();
    });
}

void Drain::refuse() {
    phase_ = Phase::refusing;
    deadline_ = std::chrono::steady_clock::now() + settings_.timeout;
    hooks_.refuse();
    look();
}

void Drain::look() {
    const bool idle = hooks_.idle();
    if (idle || std::chrono::steady_clock::now() >= deadline_) {
        phase_ = Phase::drained;
        hooks_.ended(idle);
        return;
    }
    timer_.expires_after(k_look);
    timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error && phase_ == Phase::refusing) look();
    });
}

void Drain::call_off() {
    if (phase_ == Phase::no) return;
    timer_.cancel();
    phase_ = Phase::no;
    hooks_.resume();
}

std::string_view Drain::phase_name() const {
    constexpr std::array<std::string_view, 4> k_names = {"no", "lame_duck", "refusing", "drained"};
    return k_names[static_cast<std::size_t>(phase_)];
}

}  // namespace noren::proxy
