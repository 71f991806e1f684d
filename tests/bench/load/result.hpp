#pragma once
// What one request came to.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace load {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

struct Result {
    std::string id;
    std::size_t target = 0;  ///< index of the url
    std::size_t stage = 0;
    int status = 0;  ///< 0: no answer
    /// Empty if all was well, else the kind:
    ///   connect, connect_timeout, first_byte_timeout, silence_timeout, total_timeout
    ///   no_answer      closed before the head of an answer was whole
    ///   cut            closed inside the answer
    ///   protocol       broke HTTP's framing
    ///   unparsable, engine_error, no_end_marker, wrong_answer, altered     see judge()
    ///   differs        not the text that the other url gave for the same request
    std::string error;
    std::string detail;  ///< of the error, for people
    std::string reason;  ///< x-noren-reason
    std::optional<std::uint32_t> retry_after;
    bool left = false;          ///< our client left on purpose
    bool slow = false;          ///< our client read slowly on purpose
    bool retried = false;       ///< a kept-alive connection turned out closed; sent again on a new one
    bool checked = false;       ///< the text was compared with what it must be
    bool body_checked = false;  ///< every byte of the body was, by the hash the engine told
    TimePoint start, end;       ///< start: before connecting
    std::optional<TimePoint> first, last;  ///< token events, streamed answers only
    std::uint64_t events = 0;              ///< token events, streamed answers only
    std::uint64_t tokens = 0;              ///< output tokens as reported, else events
    std::uint64_t body_bytes = 0, body_hash = 0, text_hash = 0;
    std::uint64_t bytes_altered = 0, bytes_lost = 0, bytes_extra = 0;  ///< of the text, if checked

    /// Overload answered as it should be: not a failure of anybody's.
    bool refused() const { return error.empty() && (status == 429 || status == 503); }
    bool ok() const { return error.empty() && !left && status >= 200 && status < 300; }
    bool failed() const { return !ok() && !left && !refused(); }

    double e2e() const { return std::chrono::duration<double>(end - start).count(); }
    std::optional<double> ttft() const;
    /// (last - first) / (tokens - 1): N tokens span N-1 intervals. None for N < 2, or if all came at once.
    std::optional<double> tpot() const;
};

}  // namespace load
