#pragma once
// What a client asks of the engine: the body of any of the APIs and the x-sim-* headers, brought to one form.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/system/result.hpp>

#include "tests/sim/fault.hpp"

namespace sim {

enum class Api {
    chat,                 // OpenAI /v1/chat/completions
    completions,          // OpenAI /v1/completions
    responses,            // OpenAI /v1/responses
    messages,             // Anthropic /v1/messages
    tgi_generate,         // TGI /generate
    tgi_generate_stream,  // TGI /generate_stream
    tgi_root,             // TGI /
    ollama_chat,          // Ollama /api/chat
    ollama_generate,      // Ollama /api/generate
    llamacpp,             // llama.cpp /completion
    triton,               // Triton /v2/models/M/generate
    triton_stream,        // Triton /v2/models/M/generate_stream
    embeddings,           // OpenAI /v1/embeddings
    rerank,               // Jina, vLLM /v1/rerank
};

std::string_view name_of(Api api);

/// Embeddings and rerank only read: they are prefilled and answered, nothing is generated.
inline bool generates(Api api) {
    return api != Api::embeddings && api != Api::rerank;
}

struct Route {
    Api api;
    std::string model;  ///< from the path (Triton), else empty
};

/// nullopt = no API of ours lives at this path (without query).
std::optional<Route> route_of(std::string_view path);

/// Why a request is refused, before its dialect is put on.
struct Refusal {
    Refusal() = default;
    Refusal(unsigned code, std::string why) : status(code), message(std::move(why)) {}
    unsigned status = 400;
    std::string message;
};
template <typename T>
using Result = boost::system::result<T, Refusal>;

/// Per-request overrides, from the x-sim-* request headers.
struct Overrides {
    std::optional<std::chrono::milliseconds> ttft;      ///< x-sim-ttft-ms
    std::optional<std::chrono::microseconds> interval;  ///< x-sim-interval-us; 0 = flood
    std::optional<bool> exponential;                    ///< x-sim-gap: fixed | exp
    std::optional<std::uint32_t> tokens;                ///< x-sim-tokens
    std::optional<std::uint32_t> prompt_tokens;         ///< x-sim-prompt-tokens
    std::optional<std::uint32_t> bytes;                 ///< x-sim-bytes: text bytes per event
    std::optional<std::uint32_t> tokens_per_event;      ///< x-sim-tokens-per-event
    std::optional<bool> usage;                          ///< x-sim-usage: on | off
    std::optional<Fault> fault;                         ///< x-sim-fault
    std::uint32_t split_bytes = 0;                      ///< x-sim-chunk-split: BYTES[:PAUSE_US]
    std::chrono::microseconds split_pause{0};
    bool close = false;   ///< x-sim-close: 1 = close-delimited answer
    bool digest = false;  ///< x-sim-digest: on = tell the hash of the body
    bool stamp = false;   ///< x-sim-stamp: on = every event of a stream tells when it was sent
};

/// Looks a request header up by its lower-case name; empty = absent.
using HeaderLookup = std::function<std::string_view(std::string_view)>;

Result<Overrides> read_overrides(const HeaderLookup& header);

/// Bounds and defaults of what may be asked.
struct AskLimits {
    std::uint32_t default_tokens = 128;  ///< output tokens if the request names no number
    std::uint32_t max_output = 4096;     ///< what max_tokens is cut to; x-sim-tokens is not
    std::uint32_t max_choices = 16;      ///< n
};

struct Ask {
    Api api = Api::chat;
    std::string id;  ///< the request id; all generated text follows from it
    std::string model;
    bool stream = false;
    std::uint32_t choices = 1;        ///< n (chat and completions only)
    std::uint32_t items = 1;          ///< embedding inputs or documents to rank
    std::uint32_t prompt_tokens = 1;  ///< x-sim-prompt-tokens, else text bytes / 4, at least 1
    std::uint32_t output_tokens = 1;  ///< of each choice
    bool hit_limit = false;           ///< the number came from the request: finish reason "length"
    std::uint32_t tokens_per_event = 1;
    std::uint32_t event_bytes = 0;  ///< 0 = natural text
    bool stamp = false;             ///< k_unstamped in front of each event's text
    bool report_usage = true;       ///< whether counts appear where this API has them
    bool continuous_usage = false;  ///< vLLM's stream_options.continuous_usage_stats
    std::int64_t created = 0;       ///< Unix seconds, for the answer's own time stamps
};

/// Reads the body of an API. Refusals carry the words, not the dialect.
Result<Ask> read_ask(const Route& route, std::string_view body, const Overrides& overrides,
                     const AskLimits& limits);

}  // namespace sim
