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
    std::chrono::milliseconds duration{0};  ///< 0 = ended by Options::requests only
};

/// One line of a prompt file: the user's words, or the request body as it is to be sent.
struct Prompt {
    std::string text;
    bool is_body = false;
};

struct Options {
    /// http://host:port[/path] or unix:/path. With two, every request goes to both, in turn which is first.
    std::vector<std::string> urls;
    std::vector<std::string> labels;  ///< what reports call the urls; as many as there are urls
    Api api = Api::chat;
    bool stream = true;
    std::string model = "sim-7b";
    Range max_tokens{64, 64};
    Range prompt_words{32, 32};
    std::vector<Prompt> prompts;       ///< used in turn instead of synthetic ones
    std::vector<std::string> headers;  ///< "Name: value" lines
    bool keep_alive = true;
    /// A closed-loop client that was refused, or found nobody, waits so long before it asks again.
    std::chrono::milliseconds refused_pause{100};

    std::chrono::milliseconds spread{0};  ///< closed loop: the clients of a stage begin evenly over so long
    std::vector<Stage> stages;        ///< closed loop; one after the other. Open loop: the first one's time
    std::uint64_t requests = 0;       ///< end after so many; 0 = by time
    double rate = 0;                  ///< requests per second, Poisson arrivals; 0 = closed loop
    std::uint32_t max_open = 10'000;  ///< with rate: an arrival beyond that is counted as missed
    std::uint64_t seed = 1;           ///< of everything random

    std::chrono::milliseconds connect_timeout{5'000};
    std::chrono::milliseconds first_byte_timeout{120'000};  ///< from the start of the request
    std::chrono::milliseconds silence_timeout{120'000};     ///< between two reads of an answer
    std::chrono::milliseconds total_timeout{0};             ///< of a whole request; 0 = none

    double leave = 0;  ///< fraction of requests whose client leaves at a random moment
    std::chrono::milliseconds leave_within{1'000};
    double slow = 0;                ///< fraction of requests whose client reads slowly
    std::uint32_t read_rate = 512;  ///< bytes per second that such a client reads

    bool verify = true;  ///< against a noren-sim: every byte must be the right one
    /// For a noren-sim: reads no JSON, so that little is spent per event. The engine stamps its events, which
    /// gives the delay of each on its way; bodies are checked by their hash alone.
    bool lean = false;
    bool expect_same = false;  ///< with two urls: both must generate the same text
};

}  // namespace load
