#include "tests/bench/load/api.hpp"

#include <algorithm>
#include <array>

#include <boost/json.hpp>

namespace load {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 8> k_names = {"chat", "completions", "responses", "messages",
                                                     "tgi",  "ollama",      "llamacpp",  "triton"};

/// The value at a path of keys and (as digits) indices; null if there is none.
const json::value* at(const json::value& root, std::initializer_list<std::string_view> path) {
    const json::value* here = &root;
    for (const std::string_view step : path) {
        if (const auto* object = here->if_object()) {
            here = object->if_contains(json::string_view(step.data(), step.size()));
        } else if (const auto* array = here->if_array(); array && step == "0" && !array->empty()) {
            here = &array->front();
        } else {
            here = nullptr;
        }
        if (!here) return nullptr;
    }
    return here;
}

void add_text(Told& told, const json::value* value) {
    if (value && value->is_string()) told.text.append(value->as_string());
}

void add_count(Told& told, const json::value* value) {
    if (value && value->is_int64() && value->as_int64() > 0)
        told.output_tokens = static_cast<std::uint64_t>(value->as_int64());
}

bool is_string(const json::value* value, std::string_view text) {
    return value && value->is_string() && std::string_view(value->as_string()) == text;
}

bool is_true(const json::value* value) {
    return value && value->is_bool() && value->as_bool();
}

void read_openai(Told& told, const json::value& v) {
    add_text(told, at(v, {"choices", "0", "delta", "content"}));
    add_text(told, at(v, {"choices", "0", "message", "content"}));
    add_text(told, at(v, {"choices", "0", "text"}));
    add_count(told, at(v, {"usage", "completion_tokens"}));
}

void read_responses(Told& told, const json::value& v) {
    if (is_string(at(v, {"type"}), "response.output_text.delta")) add_text(told, at(v, {"delta"}));
    told.end =
        is_string(at(v, {"type"}), "response.completed") || is_string(at(v, {"type"}), "response.incomplete");
    add_text(told, at(v, {"output", "0", "content", "0", "text"}));  // not streamed
    add_count(told, at(v, {"usage", "output_tokens"}));
    add_count(told, at(v, {"response", "usage", "output_tokens"}));
}

void read_messages(Told& told, const json::value& v) {
    if (is_string(at(v, {"type"}), "content_block_delta")) add_text(told, at(v, {"delta", "text"}));
    told.end = is_string(at(v, {"type"}), "message_stop");
    add_text(told, at(v, {"content", "0", "text"}));
    add_count(told, at(v, {"usage", "output_tokens"}));
}

void read_tgi(Told& told, const json::value& v) {
    const auto* whole = at(v, {"generated_text"});
    told.end = whole && whole->is_string();
    add_text(told, at(v, {"token", "text"}) ? at(v, {"token", "text"}) : whole);
    add_count(told, at(v, {"details", "generated_tokens"}));
}

void read_ollama(Told& told, const json::value& v) {
    add_text(told, at(v, {"message", "content"}));
    add_text(told, at(v, {"response"}));
    told.end = is_true(at(v, {"done"}));
    add_count(told, at(v, {"eval_count"}));
}

void read_llamacpp(Told& told, const json::value& v) {
    add_text(told, at(v, {"content"}));
    told.end = is_true(at(v, {"stop"}));
    add_count(told, at(v, {"tokens_predicted"}));
}

}  // namespace

std::optional<Api> api_of(std::string_view name) {
    const auto found = std::find(k_names.begin(), k_names.end(), name);
    if (found == k_names.end()) return std::nullopt;
    return static_cast<Api>(found - k_names.begin());
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

Told read_event(Api api, std::string_view data) {
    Told told;
    if (data == "[DONE]") {
        told.valid = told.end = true;
        return told;
    }
    boost::system::error_code error;
    const json::value value = json::parse(json::string_view(data.data(), data.size()), error);
    if (error || !value.is_object()) return told;
    told.valid = true;
    const auto* problem = at(value, {"error"});
    told.error = problem && !problem->is_null();
    switch (api) {
        case Api::chat:
        case Api::completions:
            read_openai(told, value);
            break;
        case Api::responses:
            read_responses(told, value);
            break;
        case Api::messages:
            read_messages(told, value);
            break;
        case Api::tgi:
            read_tgi(told, value);
            break;
        case Api::ollama:
            read_ollama(told, value);
            break;
        case Api::llamacpp:
            read_llamacpp(told, value);
            break;
        case Api::triton:
            add_text(told, at(value, {"text_output"}));
            break;
    }
    return told;
}

}  // namespace load
