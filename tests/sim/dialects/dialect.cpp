#include "tests/sim/dialects/dialect.hpp"

#include "tests/sim/dialects/families.hpp"
#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"

namespace sim {

std::uint64_t Dialect::key_of(const Ask& ask) {
    return stream_key(ask.id);
}

std::string Dialect::text(const Slice& slice) const {
    const std::string words = slice_text(key_, slice.choice, slice.first, slice.count, ask_.event_bytes);
    return ask_.stamp ? concat(k_unstamped, words) : words;
}

std::string Dialect::whole_text(std::uint32_t choice) const {
    return sim::whole_text(key_, choice, ask_.output_tokens, ask_.tokens_per_event, ask_.event_bytes);
}

std::optional<Usage> Dialect::usage() const {
    const bool none = ask_.api == Api::triton || ask_.api == Api::triton_stream || !ask_.report_usage;
    if (none) return std::nullopt;
    return Usage{ask_.prompt_tokens, generates(ask_.api) ? all_output() : 0};
}

std::unique_ptr<Dialect> make_dialect(Ask ask) {
    switch (ask.api) {
        case Api::chat:
        case Api::completions:
            return dialects::make_openai(std::move(ask));
        case Api::responses:
            return dialects::make_responses(std::move(ask));
        case Api::messages:
            return dialects::make_anthropic(std::move(ask));
        case Api::tgi_generate:
        case Api::tgi_generate_stream:
        case Api::tgi_root:
            return dialects::make_tgi(std::move(ask));
        case Api::ollama_chat:
        case Api::ollama_generate:
            return dialects::make_ollama(std::move(ask));
        case Api::llamacpp:
            return dialects::make_llamacpp(std::move(ask));
        case Api::triton:
        case Api::triton_stream:
            return dialects::make_triton(std::move(ask));
        case Api::embeddings:
        case Api::rerank:
            break;
    }
    return dialects::make_reading(std::move(ask));
}

std::string refusal_body(Api api, const Refusal& refusal) {
    const std::string message = quoted(refusal.message);
    switch (api) {
        case Api::messages:
            return concat(R"({"type":"error","error":{"type":"invalid_request_error","message":)", message,
                          "}}");
        case Api::tgi_generate:
        case Api::tgi_generate_stream:
        case Api::tgi_root:
            return concat(R"({"error":)", message, R"(,"error_type":"validation"})");
        case Api::ollama_chat:
        case Api::ollama_generate:
        case Api::triton:
        case Api::triton_stream:
            return concat(R"({"error":)", message, "}");
        case Api::llamacpp:
            return concat(R"({"error":{"code":)", refusal.status, R"(,"message":)", message,
                          R"(,"type":"invalid_request_error"}})");
        default:
            return concat(R"({"error":{"message":)", message,
                          R"(,"type":"BadRequestError","param":null,"code":)", refusal.status, "}}");
    }
}

std::string sse(std::string_view event, std::string_view data) {
    std::string out;
    out.reserve(event.size() + data.size() + 24);
    if (!event.empty()) {
        out += "event: ";
        out += event;
        out += '\n';
    }
    out += "data: ";
    out += data;
    out += "\n\n";
    return out;
}

}  // namespace sim
