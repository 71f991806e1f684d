#pragma once
// What an inference server's answer tells about itself, learnt from its body bytes on their way through.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noren::metrics {

enum class TokenSource : std::uint8_t { none, usage, events };

/// What was seen in one answer. Counts the engine did not report are empty, a reported 0 is 0.
struct Observation {
    bool streaming = false;  ///< by the media type alone: SSE or NDJSON
    bool opaque = false;     ///< content-encoding other than identity: nothing in the body can be seen
    bool error = false;      ///< status >= 400, or an error object or event in the body
    bool complete = false;   ///< the protocol's own end marker was seen
    std::uint64_t token_events = 0;
    std::uint64_t unparsed_events = 0;  ///< no JSON object, or over a bound: relayed, not understood
    std::optional<std::uint64_t> first_token_event_start;   ///< offset in the body of its first byte
    std::optional<std::uint64_t> first_token_event_offset;  ///< ... and behind its last
    std::optional<std::int64_t> output_tokens;
    TokenSource output_tokens_source = TokenSource::none;
    std::optional<std::int64_t> input_tokens;  ///< of all prompts
    std::optional<std::int64_t> cached_tokens;
    std::optional<std::int64_t> reasoning_tokens;
    std::optional<std::string> model;
    std::optional<std::string> finish_reason;

    bool operator==(const Observation&) const = default;
};

/// Sans-IO: bytes in, counts out. Never throws, never delays or changes a byte; memory is bounded.
class ResponseObserver {
  public:
    /// status: of the final answer. The others: field values as received, empty if absent.
    ResponseObserver(int status, std::string_view content_type, std::string_view content_encoding);
    ~ResponseObserver();
    ResponseObserver(ResponseObserver&&) noexcept;
    ResponseObserver& operator=(ResponseObserver&&) noexcept;

    /// Before bytes that are still to be read: fetches the memory that feed() looks at.
    void prefetch() const noexcept;

    /// Body bytes without their transfer coding, cut anywhere. Returns how many token events they completed.
    std::uint32_t feed(std::string_view bytes) noexcept;

    /// The body is over (whole or cut). Returns the token events that only the end completed (0 or 1).
    std::uint32_t finish() noexcept;

    /// Running totals so far; output_tokens and friends are settled by finish(). of_each_prompt: how many
    /// sequences the request asked for of each (n). Where they report their prompt one by one, it counts
    /// once; with 0, nobody knows, and the last report's prompt is told.
    Observation observation(std::int64_t of_each_prompt = 1) const;

    /// Token events so far.
    std::uint64_t token_events() const noexcept;

    /// For tools and tests: appends the end offset of every later token event. Must outlive the observer.
    void record_offsets(std::vector<std::uint64_t>* offsets) noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace noren::metrics
