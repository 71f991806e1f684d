#pragma once
// What an event of a streamed answer, or a whole JSON answer, tells a client of each API.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/load/api.hpp"
#include "tests/bench/load/event_framer.hpp"

namespace load {

struct Told {
    struct Piece {
        std::uint32_t choice = 0;
        std::string text;
    };

    bool valid = false;                          ///< a JSON object, or the end marker
    bool generated = false;                      ///< shows generated output: text, reasoning, a tool call
    std::vector<Piece> pieces;                   ///< the generated text
    std::optional<std::uint64_t> output_tokens;  ///< as reported so far
    bool end = false;                            ///< the API's own end marker
    bool error = false;
};

Told read_event(Api api, const Event& event);

}  // namespace load
