#include "tests/sim/ask.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include <boost/json.hpp>

#include "tests/sim/json_text.hpp"

namespace sim {

namespace json = boost::json;

namespace {

constexpr std::array<std::pair<std::string_view, Api>, 15> k_paths = {{
    {"/v1/chat/completions", Api::chat},
    {"/v1/completions", Api::completions},
    {"/v1/responses", Api::responses},
    {"/v1/messages", Api::messages},
    {"/generate", Api::tgi_generate},
    {"/generate_stream", Api::tgi_generate_stream},
    {"/", Api::tgi_root},
    {"/api/chat", Api::ollama_chat},
    {"/api/generate", Api::ollama_generate},
    {"/completion", Api::llamacpp},
    {"/completions", Api::llamacpp},
    {"/v1/embeddings", Api::embeddings},
    {"/v1/rerank", Api::rerank},
    {"/v2/rerank", Api::rerank},
    {"/rerank", Api::rerank},
}};

/// Where each API keeps its fields; "a.b" is member b of object a.
struct Fields {
    std::string_view prompt;
    std::array<std::string_view, 2> max_tokens;
};

Fields fields_of(Api api) {
    switch (api) {
        case Api::chat:
            return {"messages", {"max_completion_tokens", "max_tokens"}};
        case Api::completions:
            return {"prompt", {"max_tokens", ""}};
        case Api::responses:
            return {"input", {"max_output_tokens", ""}};
        case Api::messages:
            return {"messages", {"max_tokens", ""}};
        case Api::tgi_generate:
        case Api::tgi_generate_stream:
        case Api::tgi_root:
            return {"inputs", {"parameters.max_new_tokens", ""}};
        case Api::ollama_chat:
            return {"messages", {"options.num_predict", ""}};
        case Api::ollama_generate:
            return {"prompt", {"options.num_predict", ""}};
        case Api::llamacpp:
            return {"prompt", {"n_predict", ""}};
        case Api::triton:
        case Api::triton_stream:
            return {"text_input", {"max_tokens", "parameters.max_tokens"}};
        case Api::embeddings:
            return {"input", {"", ""}};
        case Api::rerank:
            return {"documents", {"", ""}};
    }
    return {};
}

const json::value* find(const json::object& object, std::string_view path) {
    const auto dot = path.find('.');
    const json::value* value = object.if_contains(path.substr(0, dot));
    if (dot == std::string_view::npos || value == nullptr) return value;
    return value->is_object() ? find(value->get_object(), path.substr(dot + 1)) : nullptr;
}

bool flag(const json::object& object, std::string_view path, bool otherwise) {
    const json::value* value = find(object, path);
    return value != nullptr && value->is_bool() ? value->get_bool() : otherwise;
}

/// Bytes of text anywhere below `value`; token id arrays count four bytes a number.
std::size_t text_bytes(const json::value& value) {
    std::size_t bytes = 0;
    if (value.is_string()) return value.get_string().size();
    if (value.is_number()) return 4;
    if (value.is_array()) {
        for (const json::value& item : value.get_array())
            bytes += text_bytes(item);
    } else if (value.is_object()) {
        for (const auto& member : value.get_object())
            bytes += text_bytes(member.value());
    }
    return bytes;
}

std::uint32_t clamp_count(std::size_t count) {
    constexpr std::size_t k_most = 1U << 30U;
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(count, 1, k_most));
}

/// The body's own bound on output tokens; 0 = none given.
Result<std::uint32_t> asked_tokens(Api api, const json::object& body) {
    for (std::string_view path : fields_of(api).max_tokens) {
        const json::value* value = path.empty() ? nullptr : find(body, path);
        if (value == nullptr || value->is_null()) continue;
        const std::string name(path.substr(path.rfind('.') + 1));
        if (!value->is_int64()) return Refusal{400, name + " must be an integer."};
        // -1 is "no bound" for llama.cpp and Ollama (which also has -2).
        if (value->get_int64() < 0 && (name == "n_predict" || name == "num_predict")) continue;
        if (value->get_int64() < 1) {
            return Refusal{400, concat(name, " must be at least 1, got ", value->get_int64(), ".")};
        }
        return clamp_count(static_cast<std::size_t>(value->get_int64()));
    }
    if (api == Api::messages) return Refusal{400, "max_tokens: Field required"};
    return 0U;
}

Result<std::uint32_t> asked_choices(Api api, const json::object& body, std::uint32_t most) {
    const json::value* value = body.if_contains("n");
    if ((api != Api::chat && api != Api::completions) || value == nullptr || value->is_null()) return 1U;
    if (!value->is_int64() || value->get_int64() < 1 || value->get_int64() > most) {
        return Refusal{400, concat("n must be an integer from 1 to ", most, ".")};
    }
    return static_cast<std::uint32_t>(value->get_int64());
}

bool asks_stream(Api api, const json::object& body) {
    switch (api) {
        case Api::tgi_generate_stream:
        case Api::triton_stream:
            return true;
        case Api::tgi_generate:
        case Api::triton:
        case Api::embeddings:
        case Api::rerank:
            return false;
        case Api::ollama_chat:
        case Api::ollama_generate:
            return flag(body, "stream", true);
        default:
            return flag(body, "stream", false);
    }
}

/// Streams of OpenAI's two older APIs and of TGI report counts only when asked to.
bool asks_usage(const Ask& ask, const json::object& body) {
    switch (ask.api) {
        case Api::chat:
        case Api::completions:
            return !ask.stream || flag(body, "stream_options.include_usage", false);
        case Api::tgi_generate:
        case Api::tgi_root:
        case Api::tgi_generate_stream:
            return flag(body, "parameters.details", false);
        default:
            return true;
    }
}

template <typename Number>
bool parse_number(std::string_view text, Number& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

/// Reads x-sim-* headers and remembers the first that makes no sense.
class HeaderReader {
  public:
    explicit HeaderReader(const HeaderLookup& header) : header_(header) {}

    std::optional<std::uint32_t> count(std::string_view name, std::uint32_t least = 0) {
        const std::string_view text = header_(name);
        if (text.empty()) return std::nullopt;
        std::uint32_t value = 0;
        if (parse_number(text, value) && value >= least && value <= k_most) return value;
        return complain(name, text, concat("a number from ", least, " to ", k_most));
    }

    std::optional<bool> choice(std::string_view name, std::string_view yes, std::string_view no) {
        const std::string_view text = header_(name);
        if (text.empty()) return std::nullopt;
        if (text == yes || text == no) return text == yes;
        complain(name, text, concat(yes, " or ", no));
        return std::nullopt;
    }

    std::nullopt_t complain(std::string_view name, std::string_view found, std::string_view expected) {
        if (error_.empty()) error_ = concat(name, ": found \"", found, "\", expected ", expected);
        return std::nullopt;
    }

    const std::string& error() const { return error_; }

  private:
    static constexpr std::uint32_t k_most = 100'000'000;
    const HeaderLookup& header_;
    std::string error_;
};

void read_split(HeaderReader& reader, std::string_view text, Overrides& out) {
    if (text.empty()) return;
    const auto colon = text.find(':');
    std::uint32_t pause = 0;
    const bool fine = parse_number(text.substr(0, colon), out.split_bytes) && out.split_bytes > 0 &&
                      (colon == std::string_view::npos || parse_number(text.substr(colon + 1), pause));
    if (!fine) reader.complain("x-sim-chunk-split", text, "BYTES or BYTES:PAUSE_US");
    out.split_pause = std::chrono::microseconds(pause);
}

}  // namespace

std::string_view name_of(Api api) {
    switch (api) {
        case Api::chat:
            return "openai.chat";
        case Api::completions:
            return "openai.completions";
        case Api::responses:
            return "openai.responses";
        case Api::messages:
            return "anthropic.messages";
        case Api::tgi_generate:
            return "tgi.generate";
        case Api::tgi_generate_stream:
            return "tgi.generate_stream";
        case Api::tgi_root:
            return "tgi.root";
        case Api::ollama_chat:
            return "ollama.chat";
        case Api::ollama_generate:
            return "ollama.generate";
        case Api::llamacpp:
            return "llamacpp.completion";
        case Api::triton:
            return "triton.generate";
        case Api::triton_stream:
            return "triton.generate_stream";
        case Api::embeddings:
            return "openai.embeddings";
        case Api::rerank:
            return "rerank";
    }
    return "";
}

std::optional<Route> route_of(std::string_view path) {
    for (const auto& [known, api] : k_paths) {
        if (path == known) return Route{api, {}};
    }
    constexpr std::string_view k_triton = "/v2/models/";
    if (!path.starts_with(k_triton)) return std::nullopt;
    const std::string_view rest = path.substr(k_triton.size());
    const auto slash = rest.rfind('/');
    if (slash == std::string_view::npos || slash == 0) return std::nullopt;
    const std::string model(rest.substr(0, rest.find('/')));
    if (rest.substr(slash) == "/generate") return Route{Api::triton, model};
    if (rest.substr(slash) == "/generate_stream") return Route{Api::triton_stream, model};
    return std::nullopt;
}

Result<Overrides> read_overrides(const HeaderLookup& header) {
    HeaderReader reader(header);
    Overrides out;
    if (auto ms = reader.count("x-sim-ttft-ms")) out.ttft = std::chrono::milliseconds(*ms);
    if (auto us = reader.count("x-sim-interval-us")) out.interval = std::chrono::microseconds(*us);
    out.exponential = reader.choice("x-sim-gap", "exp", "fixed");
    out.tokens = reader.count("x-sim-tokens", 1);
    out.prompt_tokens = reader.count("x-sim-prompt-tokens", 1);
    out.bytes = reader.count("x-sim-bytes", 1);
    out.tokens_per_event = reader.count("x-sim-tokens-per-event", 1);
    out.usage = reader.choice("x-sim-usage", "on", "off");
    out.close = reader.choice("x-sim-close", "1", "0").value_or(false);
    out.digest = reader.choice("x-sim-digest", "on", "off").value_or(false);
    out.stamp = reader.choice("x-sim-stamp", "on", "off").value_or(false);
    read_split(reader, header("x-sim-chunk-split"), out);
    if (const std::string_view text = header("x-sim-fault"); !text.empty()) {
        out.fault = parse_fault(text);
        if (!out.fault) reader.complain("x-sim-fault", text, fault_forms());
    }
    if (!reader.error().empty()) return Refusal{400, reader.error()};
    return out;
}

Result<Ask> read_ask(const Route& route, std::string_view body, const Overrides& overrides,
                     const AskLimits& limits) {
    boost::system::error_code error;
    const json::value document = json::parse(json::string_view(body.data(), body.size()), error);
    if (error) return Refusal{400, "Invalid JSON: " + error.message()};
    if (!document.is_object()) return Refusal{400, "Input should be a JSON object"};
    const json::object& object = document.get_object();

    Ask ask;
    ask.api = route.api;
    ask.model = route.model;
    const json::value* prompt = object.if_contains(fields_of(ask.api).prompt);
    if (prompt == nullptr) return Refusal{400, std::string(fields_of(ask.api).prompt) + ": Field required"};
    if (const json::value* model = object.if_contains("model"); model != nullptr && model->is_string()) {
        ask.model = std::string(model->get_string());
    }
    const auto tokens = asked_tokens(ask.api, object);
    if (!tokens) return tokens.error();
    const auto choices = asked_choices(ask.api, object, limits.max_choices);
    if (!choices) return choices.error();

    ask.stream = asks_stream(ask.api, object);
    ask.choices = *choices;
    ask.items = prompt->is_array() ? clamp_count(prompt->get_array().size()) : 1;
    ask.prompt_tokens = overrides.prompt_tokens.value_or(clamp_count((text_bytes(*prompt) + 3) / 4));
    ask.hit_limit = overrides.tokens.has_value() || *tokens > 0;
    ask.output_tokens =
        overrides.tokens.value_or(*tokens > 0 ? std::min(*tokens, limits.max_output) : limits.default_tokens);
    if (!generates(ask.api)) ask.output_tokens = 1;
    ask.tokens_per_event = overrides.tokens_per_event.value_or(1);
    ask.event_bytes = overrides.bytes.value_or(0);
    ask.stamp = overrides.stamp;
    ask.report_usage = overrides.usage.value_or(asks_usage(ask, object));
    ask.continuous_usage = ask.report_usage && flag(object, "stream_options.continuous_usage_stats", false);
    return ask;
}

}  // namespace sim
