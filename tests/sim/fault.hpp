#pragma once
// Scripted misbehaviour: what the engine does wrong on purpose, so that tests can see how a proxy takes it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sim {

/// One fault, written NAME, NAME@N or NAME:N (header `x-sim-fault`, flag `--fault`, `POST /sim/control`).
struct Fault {
    enum class Kind {
        none,
        reset,              ///< reset@N: RST after N body bytes (payload, without chunk framing)
        cut,                ///< cut@N: FIN after N body bytes, inside a chunk
        stall,              ///< stall@N: silent after N body bytes, until the client leaves
        garbage,            ///< bytes that are not HTTP, then close
        early,              ///< early:STATUS: the final answer before the body is read
        slow_head,          ///< slow-head:MS: the response head comes that much later
        bad_chunk,          ///< a chunk-size line that is no number after the first event
        no_final_chunk,     ///< everything is sent, then FIN instead of the last chunk
        error,              ///< error@K: the API's own error event after K token events
        close_before_head,  ///< FIN instead of any answer
        reset_before_head,  ///< RST instead of any answer
        huge_head,          ///< huge-head[:BYTES]: one field of that size (default 1 MiB) in the head
        close_after,        ///< a correct answer, then the connection closes unannounced
    };

    Kind kind = Kind::none;
    std::uint64_t at = 0;  ///< N, STATUS, MS, K or BYTES

    bool is(Kind k) const { return kind == k; }
};

/// nullopt = no such fault, or its number is missing, not a number, or not wanted.
std::optional<Fault> parse_fault(std::string_view text);

/// The way parse_fault() reads it; "" for none.
std::string to_string(const Fault& fault);

/// Every form, for help texts and error messages.
std::string fault_forms();

}  // namespace sim
