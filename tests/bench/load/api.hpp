#pragma once
// The inference APIs as a client asks them: where to send what.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace load {

enum class Api : unsigned char { chat, completions, responses, messages, tgi, ollama, llamacpp, triton };

/// "chat", "completions", ...; nullopt if there is no such API.
std::optional<Api> api_of(std::string_view name);
std::string_view name_of(Api api);

struct Ask {
    std::string prompt;
    std::string model;
    std::uint32_t max_tokens = 64;
    bool stream = true;
};

std::string path_of(Api api, const Ask& ask);
std::string body_of(Api api, const Ask& ask);

}  // namespace load
