#pragma once
// Going out of service without cutting anybody off: not ready at once, then refusing, over when nothing runs.

#include <chrono>
#include <functional>
#include <string_view>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/config.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

/// One thread (the ops thread).
class Drain {
  public:
    enum class Phase : unsigned char {
        no,
        lame_duck,  ///< readiness fails, work is still taken: routers need a moment to notice
        refusing,   ///< new work is refused, running streams go on
        drained,    ///< nothing runs, or drain.timeout is over
    };
    struct Hooks {
        std::function<void()> lame_duck;          ///< connections are to end with their next answer
        std::function<void()> refuse;             ///< from now on no new work
        std::function<void()> resume;             ///< the drain was called off
        std::function<bool()> idle;               ///< nothing runs
        std::function<void(bool in_time)> ended;  ///< drained; false: by the timeout, something still runs
    };

    Drain(asio::io_context& io, Hooks hooks) : timer_(io), hooks_(std::move(hooks)) {}

    /// Starts. If one is running, only its lame-duck time may become shorter. That of the settings may be
    /// overruled (Ctrl-C: none).
    void begin(const config::Drain& settings, std::chrono::milliseconds lame_duck);
    /// Back to service, from any phase.
    void call_off();
    Phase phase() const { return phase_; }
    std::string_view phase_name() const;

  private:
    void refuse();
    void look();

    asio::steady_timer timer_;
    Hooks hooks_;
    config::Drain settings_;
    Phase phase_ = Phase::no;
    std::chrono::steady_clock::time_point deadline_;
};

}  // namespace noren::proxy
