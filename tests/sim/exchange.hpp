#pragma once
// One request while it is answered.

#include <functional>

#include <boost/asio/ip/tcp.hpp>

#include "tests/sim/core.hpp"
#include "tests/sim/sleeper.hpp"

namespace sim {

struct Exchange {
    Core& core;
    net::ip::tcp::socket& socket;
    Sleeper& sleeper;            ///< cancelled when the client leaves or the engine stops
    Truth& truth;                ///< written as things happen
    std::function<void()> over;  ///< called before the client can know that it is over, and when it has left
    Overrides overrides;
    Fault fault;
    bool http10 = false;
    bool keep_alive = true;  ///< the client's wish; then also ours
};

}  // namespace sim
