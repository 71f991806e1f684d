#include "tests/bench/load/api.hpp"

#include <algorithm>
#include <array>

#include <boost/json.hpp>

namespace load {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 8> k_names = {"chat", "completions", "responses", "messages",
                                                     "tgi",  "ollama",      "llamacpp",  "triton"};

}  // namespace

std::optional<Api> api_of(std::string_view name) {
    const auto found = std::find(k_names.begin(), k_names.end(), name);
    if (found == k_names.end()) return std::nullopt;
    return static_cast<Api>(found - k_names.begin());
}

std::string_view name_of(Api api) {
    return k_names[static_cast<std::size_t>(api)];
}

std::string path_of(Api api, const Ask& ask) {
    switch (api) {
        case Api::chat:
            return "/v1/chat/completions";
        case Api::completions:
            return "/v1/completions";
        case Api::responses:
            return "/v1/responses";
        case Api::messages:
            return "/v1/messages";
        case Api::tgi:
            return ask.stream ? "/generate_stream" : "/generate";
        case Api::ollama:
            return "/api/chat";
        case Api::llamacpp:
            return "/completion";
        case Api::triton:
            return "/v2/models/" + ask.model + (ask.stream ? "/generate_stream" : "/generate");
    }
    return "/";
}

std::string body_of(Api api, const Ask& ask) {
    const json::array messages{json::object{{"role", "user"}, {"content", ask.prompt}}};
    const std::int64_t most = ask.max_tokens;
    json::object body;
    switch (api) {
        case Api::chat:
            body = {
                {"model", ask.model}, {"messages", messages}, {"max_tokens", most}, {"stream", ask.stream}};
            break;
        case Api::completions:
            body = {
                {"model", ask.model}, {"prompt", ask.prompt}, {"max_tokens", most}, {"stream", ask.stream}};
            break;
        case Api::responses:
            body = {{"model", ask.model},
                    {"input", ask.prompt},
                    {"max_output_tokens", most},
                    {"stream", ask.stream}};
            break;
        case Api::messages:
            body = {
                {"model", ask.model}, {"messages", messages}, {"max_tokens", most}, {"stream", ask.stream}};
            break;
        case Api::tgi:
            body = {{"inputs", ask.prompt},
                    {"parameters", json::object{{"max_new_tokens", most}, {"details", true}}}};
            break;
        case Api::ollama:
            body = {{"model", ask.model},
                    {"messages", messages},
                    {"stream", ask.stream},
                    {"options", json::object{{"num_predict", most}}}};
            break;
        case Api::llamacpp:
            body = {{"prompt", ask.prompt}, {"n_predict", most}, {"stream", ask.stream}};
            break;
        case Api::triton:
            body = {{"text_input", ask.prompt}, {"max_tokens", most}, {"stream", ask.stream}};
            break;
    }
    if ((api == Api::chat || api == Api::completions) && ask.stream)
        body["stream_options"] = json::object{{"include_usage", true}};
    return json::serialize(body);
}

}  // namespace load
