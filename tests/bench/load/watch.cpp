#include "tests/bench/load/watch.hpp"

#include <algorithm>

namespace load {

struct Watch::State {
    struct Deadline {
        Why why = Why::none;
        TimePoint until = TimePoint::max();
    };

    explicit State(Socket& watched) : socket(&watched), timer(watched.get_executor()) {}

    const Deadline& earliest() const {
        return *std::min_element(deadlines.begin(), deadlines.end(),
                                 [](const Deadline& a, const Deadline& b) { return a.until < b.until; });
    }

    Socket* socket;  ///< null once the watch is over: a handler may still be under way then
    boost::asio::steady_timer timer;
    std::array<Deadline, 3> deadlines;  ///< of the phase, total, leave
    TimePoint armed = TimePoint::max();
    Why fired = Why::none;
};

Watch::Watch(Socket& socket) : state_(std::make_shared<State>(socket)) {}

Watch::~Watch() {
    state_->socket = nullptr;
    state_->timer.cancel();
}

void Watch::phase(Why why, TimePoint until) {
    state_->deadlines[0] = {why, until};
    if (until < state_->armed) arm(state_);
}

void Watch::whole(Why why, TimePoint until) {
    state_->deadlines[why == Why::total ? 1 : 2] = {why, until};
    if (until < state_->armed) arm(state_);
}

Watch::Why Watch::fired() const {
    return state_->fired;
}

void Watch::arm(const std::shared_ptr<State>& state) {
    state->armed = state->earliest().until;
    state->timer.expires_at(state->armed);
    state->timer.async_wait([state](const boost::system::error_code& error) {
        if (error || !state->socket || state->fired != Why::none) return;
        const State::Deadline& due = state->earliest();
        if (due.until > Clock::now()) return arm(state);
        state->fired = due.why;
        boost::system::error_code ignored;
        state->socket->close(ignored);
    });
}

std::string_view error_of(Watch::Why why) {
    switch (why) {
        case Watch::Why::connect:
            return "connect_timeout";
        case Watch::Why::first_byte:
            return "first_byte_timeout";
        case Watch::Why::silence:
            return "silence_timeout";
        case Watch::Why::total:
            return "total_timeout";
        case Watch::Why::none:
        case Watch::Why::leave:
            break;
    }
    return "";
}

}  // namespace load
