#pragma once
// The deadlines of one request.

#include <array>
#include <chrono>
#include <memory>
#include <string_view>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include "tests/bench/load/result.hpp"

namespace load {

/// Closes a socket when the earliest of its deadlines passes; the operation under way on it then fails, and
/// fired() tells why. Moving a deadline later costs a store only: the timer finds out when it runs out.
class Watch {
  public:
    enum class Why : unsigned char { none, connect, first_byte, silence, total, leave };
    using Socket = boost::asio::generic::stream_protocol::socket;

    explicit Watch(Socket& socket);
    /// Nothing fires any more, not even what has already run out.
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// Sets the deadline of the phase a request is in: one of connect, first_byte, silence at a time.
    void phase(Why why, TimePoint until);
    /// Sets a deadline of the whole request: leave, total.
    void whole(Why why, TimePoint until);
    Why fired() const;

  private:
    struct State;
    static void arm(const std::shared_ptr<State>& state);

    std::shared_ptr<State> state_;
};

/// "connect_timeout", ...: the kind of error; "" for none and leave.
std::string_view error_of(Watch::Why why);

}  // namespace load
