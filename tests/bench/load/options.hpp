#pragma once
// Everything a load run is told.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/load/api.hpp"

namespace load {

/// A uniform distribution of whole numbers, ends included; equal ends: fixed.
struct Range {
    std::uint32_t least = 0, most = 0;
};

struct Stage {
    std::uint32_t connections = 0;
    std::chrono::milliseconds duration{0};
};

struct Options {
    std::vector<std::string>
        urls;  ///< http://host:port or unix:/path; with two, every request goes to both in turn
    Api api = Api::chat;
    bool stream = true;
    std::string model = "sim-7b";
    Range max_tokens{64, 64};
    Range prompt_words{32, 32};
    std::vector<std::string> prompts;  ///< used in turn instead of synthetic ones
    std::vector<std::string> headers;  ///< "Name: value" lines

    std::vector<Stage> stages;        ///< closed loop; one after the other
    std::uint64_t requests = 0;       ///< end after so many; 0 = by time
    double rate = 0;                  ///< requests per second, Poisson arrivals; 0 = closed loop
    std::uint32_t max_open = 10'000;  ///< with rate: an arrival beyond that is counted as missed
    std::uint64_t seed = 1;
    bool keep_alive = true;
    std::chrono::milliseconds connect_timeout{5'000};
    std::chrono::milliseconds silence_timeout{120'000};  ///< no byte for so long
    double leave = 0;  ///< fraction of requests whose client leaves at a random moment
    std::chrono::milliseconds leave_within{1'000};
    bool verify_text = true;  ///< against a noren-sim: every token must be the right one
};

}  // namespace load
