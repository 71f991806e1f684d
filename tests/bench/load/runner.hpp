#pragma once
// Runs a load: closed loop (so many connections, each as fast as it is served) or open loop (Poisson arrivals
// that wait for nobody).

#include <functional>
#include <vector>

#include "tests/bench/load/histogram.hpp"
#include "tests/bench/load/options.hpp"
#include "tests/bench/load/result.hpp"
#include "tests/bench/load/summary.hpp"

namespace load {

struct Progress {
    std::size_t stage = 0;
    std::uint64_t open = 0, done = 0, refused = 0, failed = 0, tokens = 0;
    double seconds = 0;
    bool stopping = false;
};

struct Outcome {
    std::vector<Result> results;
    std::vector<std::vector<EventTimes>> times;  ///< [stage][url]
    std::uint64_t missed = 0;                    ///< arrivals that found max_open requests under way
    Samples lateness;                            ///< open loop: seconds from due to begun; our own fault
    bool interrupted = false;                    ///< by SIGINT
};

using OnProgress = std::function<void(const Progress&)>;

/// on_progress is called about every half second from the running thread. SIGINT ends the run as if its time
/// were over; a second one kills as usual. Throws std::runtime_error for an unusable url, before anything is
/// sent.
Outcome run(const Options& options, const OnProgress& on_progress);

}  // namespace load
