#pragma once
// How each API spells an answer. Sans-IO: token slices in, the bytes of events out. The shapes are those of
// the engines themselves (vLLM, Anthropic, TGI, Ollama, llama.cpp, Triton), with their quirks.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/ask.hpp"
#include "tests/sim/scheduler.hpp"

namespace sim {

/// Tokens [first, first + count) of one choice.
struct Slice {
    std::uint32_t choice = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool last = false;  ///< of this choice
};

/// One event of a stream (an SSE block with its blank line, or an NDJSON line with its LF).
struct Event {
    std::string bytes;
    std::uint32_t tokens = 0;  ///< > 0: a token event
};
using Events = std::vector<Event>;

/// For the APIs that report how long they took.
struct Timing {
    Duration prompt{};  ///< arrival to first token
    Duration decode{};  ///< first to last token
};

/// The counts an answer reports to its client.
struct Usage {
    std::uint64_t prompt_tokens = 0;
    std::uint64_t completion_tokens = 0;
};

/// One answer in one API. Called in this order: accepted, tokens..., then finished or failed; or only
/// document() for an answer that is not streamed.
class Dialect {
  public:
    explicit Dialect(Ask ask) : ask_(std::move(ask)), key_(key_of(ask_)) {}
    virtual ~Dialect() = default;
    Dialect(const Dialect&) = delete;
    Dialect& operator=(const Dialect&) = delete;

    virtual std::string_view stream_type() const { return "text/event-stream; charset=utf-8"; }

    /// What goes out with the head, long before any token.
    virtual void accepted(Events&) {}
    virtual void tokens(const Slice& slice, Events& out) = 0;
    virtual void finished(const Timing& timing, Events& out) = 0;
    /// A failure in the middle of the stream, as this engine tells it.
    virtual void failed(std::string_view message, Events& out) = 0;
    virtual std::string document(const Timing& timing) const = 0;

    /// The counts this answer reports if it is finished; nullopt = none.
    std::optional<Usage> usage() const;
    const Ask& ask() const { return ask_; }

  protected:
    std::string text(const Slice& slice) const;
    std::string whole_text(std::uint32_t choice) const;
    std::uint64_t all_output() const { return std::uint64_t{ask_.output_tokens} * ask_.choices; }

  private:
    static std::uint64_t key_of(const Ask& ask);

    Ask ask_;
    std::uint64_t key_;
};

std::unique_ptr<Dialect> make_dialect(Ask ask);

/// The body of a refusal before any generation, in the words of the API's engine.
std::string refusal_body(Api api, const Refusal& refusal);

/// One SSE block of the named event; no `event:` line if the name is empty.
std::string sse(std::string_view event, std::string_view data);

}  // namespace sim
