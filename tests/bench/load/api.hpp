#pragma once
// The inference APIs as a client sees them: what to send, and what an event of the answer says.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace load {

enum class Api : unsigned char { chat, completions, responses, messages, tgi, ollama, llamacpp, triton };

/// "chat", "completions", ... ; empty if there is no such API.
std::optional<Api> api_of(std::string_view name);

struct Ask {
    std::string prompt;
    std::string model;
    std::uint32_t max_tokens = 64;
    bool stream = true;
};

std::string path_of(Api api, const Ask& ask);
std::string body_of(Api api, const Ask& ask);

/// What one event (SSE data, an NDJSON line) or a whole JSON answer tells.
struct Told {
    bool valid = false;                          ///< JSON, or the end marker
    std::string text;                            ///< generated text in it
    std::optional<std::uint64_t> output_tokens;  ///< as reported
    bool end = false;                            ///< the API's own end marker
    bool error = false;
};

Told read_event(Api api, std::string_view data);

}  // namespace load
