#pragma once
// How much memory noren can need: what each thing holds at most, as the limits of the config have it.

#include <cstdint>

#include "config/config.hpp"

namespace noren::proxy {

/// Bytes, each at most. In all: process + connections * connection + waiting * waiting_request + running *
/// running_request, where every request in progress counts as waiting or running, whether it needs a permit
/// or not. What the kernel holds for a socket is not in it.
struct MemoryBound {
    std::uint64_t process = 0;          ///< without a connection: code, workers, full log queues, all labels
    std::uint64_t connection = 0;       ///< of a client, idle
    std::uint64_t waiting_request = 0;  ///< from its head's first byte until it is with the engine
    std::uint64_t running_request = 0;  ///< its connection to the engine and its answer included
    std::uint64_t worst_case = 0;       ///< all connections run requests that hold as much as can be held
};

/// connections: how many can be open.
MemoryBound memory_bound(const config::Config& config, std::uint64_t workers, std::uint64_t connections);

}  // namespace noren::proxy
