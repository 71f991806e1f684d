#pragma once
// Runs a load: closed loop (so many connections, each as fast as it is served) or open loop (Poisson arrivals
// that wait for nobody).

#include <functional>
#include <vector>

#include "tests/bench/load/options.hpp"
#include "tests/bench/load/result.hpp"

namespace load {

struct Progress {
    std::size_t stage = 0;
    std::uint64_t done = 0, failed = 0;
    double seconds = 0;
};

struct Outcome {
    std::vector<Result> results;
    std::uint64_t missed = 0;  ///< arrivals that found max_open requests under way
};

/// tick is called about every half second from the running thread. Throws for an unusable url only.
Outcome run(const Options& options, const std::function<void(const Progress&)>& tick);

}  // namespace load
