#pragma once
// Whether an answer is what was asked for, to the byte. Sans-IO.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tests/bench/load/answer_reader.hpp"
#include "tests/bench/load/api.hpp"
#include "tests/bench/load/sim_text.hpp"
#include "tests/bench/load/told.hpp"

namespace load {

/// What the events of one answer, or its JSON document, came to.
struct Reading {
    std::map<std::uint32_t, std::string> texts;  ///< by choice
    std::optional<std::uint64_t> reported;       ///< output tokens
    bool end = false, error = false, unparsable = false;
    std::uint64_t fresh = 0;  ///< token events since the caller set it to 0

    void take(Api api, const Event& event);
};

struct Verdict {
    std::string error;     ///< kind, see Result::error; empty = all is well
    std::string detail;    ///< for people
    bool checked = false;  ///< the text was compared with what it must be
    TextCheck text;
};

/// What to hold an answer against.
struct Expected {
    std::string id;
    std::optional<std::uint32_t> tokens;  ///< asked for
    const SimText* text = nullptr;        ///< null: do not look at the text
};

/// Of a whole answer. One that is no 2xx is right as it is: its status tells.
Verdict judge(Api api, const AnswerReader& reader, const Reading& reading, const Expected& expected);

}  // namespace load
