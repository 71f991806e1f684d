#pragma once
// Everything one simulated engine is told at its start.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/sim/ask.hpp"
#include "tests/sim/fault.hpp"
#include "tests/sim/pace.hpp"
#include "tests/sim/scheduler.hpp"

namespace sim {

struct Options {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;        ///< 0 = any free one
    std::string model = "sim-7b";  ///< what /v1/models lists and answers say if the request names none

    GpuModel gpu;
    std::optional<Pace> lone;  ///< set: every request is a lone stream; else they share the GPU's batch
    std::uint64_t seed = 0;    ///< of the exponential gaps, with the request id
    AskLimits ask;

    std::chrono::milliseconds keep_alive{5000};  ///< idle time before a connection is closed (uvicorn: 5 s)
    std::uint64_t max_body = 64U << 20U;         ///< bytes; more is 413
    std::uint32_t max_head = 64U << 10U;         ///< bytes; more is 431
    Fault fault;                                 ///< of every generating request that asks for none itself

    std::optional<std::int64_t>
        created;  ///< Unix seconds to put into answers instead of now: same bytes again

    std::string truth_file;   ///< JSON lines, appended; empty = none
    bool keep_truth = false;  ///< also in memory, for Engine::truth() and GET /sim/truth
};

}  // namespace sim
