#pragma once
// What really happened to each request, as the engine knows it: the yardstick for everything a proxy claims.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/dialects/dialect.hpp"
#include "tests/sim/scheduler.hpp"

namespace sim {

/// One request. Times are CLOCK_MONOTONIC (std::chrono::steady_clock) and so comparable between the processes
/// of one machine; a send time is taken right before the write() call.
struct Truth {
    struct Sent {
        TimePoint at;
        std::uint32_t tokens = 0;  ///< 0 = an event without generated output (role, usage, end marker, ...)
    };

    std::string id;
    std::string api;
    std::string model;
    bool stream = false;
    std::string fault;                   ///< the scripted one, "" for none
    std::string outcome;                 ///< complete, cancelled, faulted, refused, aborted (engine stopped)
    unsigned status = 0;                 ///< 0 = no head was sent
    TimePoint arrival;                   ///< request head parsed
    std::optional<TimePoint> body_read;  ///< request body complete
    std::optional<TimePoint> admitted;   ///< into the batch; known once the first token is out
    std::optional<TimePoint> head_sent;
    std::vector<Sent> events;              ///< in order; the body of a plain answer is one
    std::optional<TimePoint> cancel_seen;  ///< the client's leaving was noticed
    TimePoint end;                         ///< the request has left the engine
    std::uint64_t prompt_tokens = 0;
    std::uint64_t output_tokens = 0;  ///< written, all choices together
    std::uint64_t token_events = 0;   ///< written events with tokens; 0 for plain answers
    std::optional<Usage> usage;       ///< counts that were told to the client, to the last byte
    std::uint64_t request_bytes = 0;
    std::uint64_t request_fnv = 0;   ///< fnv1a of the request body
    std::uint64_t answer_bytes = 0;  ///< body payload without chunk framing
    std::uint64_t answer_fnv = 0;
};

/// One JSON line with LF; keys as the members, times as integers `*_ns`, hashes as 16 hex digits,
/// `events` as [[at_ns, tokens], ...], absent things as null.
std::string to_json_line(const Truth& truth);

/// Collects the truths. add() is called on the engine's thread, the rest from anywhere.
class TruthLog {
  public:
    /// Throws std::system_error if `file` is not empty and cannot be opened.
    TruthLog(const std::string& file, bool keep);

    void add(const Truth& truth);
    std::vector<Truth> kept() const;

    /// Blocks until `count` truths were added in all; false = not within `patience`.
    bool wait_for(std::uint64_t count, std::chrono::milliseconds patience) const;

  private:
    struct CloseFile {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    std::unique_ptr<std::FILE, CloseFile> file_;
    bool keep_;
    mutable std::mutex mutex_;
    mutable std::condition_variable added_;
    std::vector<Truth> kept_;
    std::uint64_t count_ = 0;
};

}  // namespace sim
