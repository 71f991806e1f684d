#pragma once
// Whether an answer is what was asked for, to the byte. Sans-IO.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

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
    /// Without reading the JSON, of an engine that stamps its token events. When it was sent, in nanoseconds
    /// of CLOCK_MONOTONIC; 0 = no token event.
    std::uint64_t take_stamped(const Event& event);
};

struct Verdict {
    std::string error;          ///< kind, see Result::error; empty = all is well
    std::string detail;         ///< for people
    bool checked = false;       ///< the text was compared with what it must be
    bool body_checked = false;  ///< the whole body was, by its hash
    TextCheck text;
};

/// What to hold an answer against.
struct Expected {
    std::string id;
    std::optional<std::uint32_t> tokens;  ///< asked for
    const SimText* text = nullptr;        ///< null: do not look at the text
    bool hash_alone = false;              ///< the events were not read
};

/// The request field that asks a noren-sim for the hash of each body it sends; the field or trailer that
/// tells it.
inline constexpr std::string_view k_ask_digest = "x-sim-digest: on";
inline constexpr const char* k_digest = "x-sim-body-fnv1a64";

/// Of a whole answer. One that is no 2xx says what it has to say with its status; its body is right if its
/// hash is.
Verdict judge(Api api, const AnswerReader& reader, const Reading& reading, const Expected& expected);

}  // namespace load
