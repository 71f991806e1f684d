#include "tests/bench/load/told.hpp"

#include <initializer_list>
#include <utility>

#include <boost/json.hpp>

namespace load {
namespace {

namespace json = boost::json;

/// The value below a path of keys; "0" is the first element of an array. Null if there is none.
const json::value* at(const json::value& root, std::initializer_list<std::string_view> path) {
    const json::value* here = &root;
    for (const std::string_view step : path) {
        if (const auto* object = here->if_object()) {
            here = object->if_contains(step);
        } else if (const auto* array = here->if_array(); array && step == "0" && !array->empty()) {
            here = &array->front();
        } else {
            return nullptr;
        }
        if (!here) return nullptr;
    }
    return here;
}

std::string_view text_at(const json::value& root, std::initializer_list<std::string_view> path) {
    const json::value* value = at(root, path);
    return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

bool is_true(const json::value* value) {
    return value && value->is_bool() && value->get_bool();
}

void add_text(Told& told, std::string_view text, std::uint32_t choice = 0) {
    if (text.empty()) return;
    told.generated = true;
    told.pieces.push_back({choice, std::string(text)});
}

void add_count(Told& told, const json::value* value) {
    if (value && value->is_int64() && value->get_int64() > 0)
        told.output_tokens = static_cast<std::uint64_t>(value->get_int64());
}

/// A streamed delta or a whole message: reasoning and tool calls are output as much as content is.
void read_openai_message(Told& told, const json::value& message, std::uint32_t choice) {
    for (const std::string_view key : {"reasoning_content", "reasoning", "content", "refusal"})
        add_text(told, text_at(message, {key}), choice);
    const json::value* calls = at(message, {"tool_calls"});
    if (!calls || !calls->is_array()) return;
    for (const json::value& call : calls->get_array()) {
        add_text(told, text_at(call, {"function", "name"}), choice);
        add_text(told, text_at(call, {"function", "arguments"}), choice);
    }
}

void read_openai(Told& told, const json::value& v) {
    add_count(told, at(v, {"usage", "completion_tokens"}));
    const json::value* choices = at(v, {"choices"});
    if (!choices || !choices->is_array()) return;
    for (const json::value& choice : choices->get_array()) {
        const json::value* index = at(choice, {"index"});
        const auto number = index && index->is_int64() ? static_cast<std::uint32_t>(index->get_int64()) : 0U;
        add_text(told, text_at(choice, {"text"}), number);
        for (const std::string_view key : {"delta", "message"})
            if (const json::value* message = at(choice, {key})) read_openai_message(told, *message, number);
    }
}

void read_responses(Told& told, const json::value& v) {
    const std::string_view type = text_at(v, {"type"});
    if (type.ends_with(".delta")) add_text(told, text_at(v, {"delta"}));
    told.end = type == "response.completed" || type == "response.incomplete" || type == "response.failed";
    told.error = told.error || type == "response.failed";
    add_count(told, at(v, {"usage", "output_tokens"}));
    add_count(told, at(v, {"response", "usage", "output_tokens"}));
    if (text_at(v, {"object"}) == "response")
        add_text(told, text_at(v, {"output", "0", "content", "0", "text"}));
}

void read_messages(Told& told, const json::value& v) {
    const std::string_view type = text_at(v, {"type"});
    if (type == "content_block_delta")
        for (const std::string_view key : {"text", "thinking", "partial_json"})
            add_text(told, text_at(v, {"delta", key}));
    told.end = type == "message_stop";
    // Not message.usage of a message_start, which is provisional.
    add_count(told, at(v, {"usage", "output_tokens"}));
    if (type == "message") add_text(told, text_at(v, {"content", "0", "text"}));
}

void read_tgi(Told& told, const json::value& v) {
    const json::value* whole = at(v, {"generated_text"});
    told.end = whole && whole->is_string();
    if (at(v, {"token"})) {
        add_text(told, text_at(v, {"token", "text"}));
        told.generated = true;  // one event is one token, also a special one without text
    } else {
        add_text(told, text_at(v, {"generated_text"}));
    }
    add_count(told, at(v, {"details", "generated_tokens"}));
}

void read_ollama(Told& told, const json::value& v) {
    add_text(told, text_at(v, {"message", "thinking"}));
    add_text(told, text_at(v, {"message", "content"}));
    add_text(told, text_at(v, {"response"}));
    told.end = is_true(at(v, {"done"}));
    add_count(told, at(v, {"eval_count"}));
}

void read_llamacpp(Told& told, const json::value& v) {
    add_text(told, text_at(v, {"content"}));
    told.end = is_true(at(v, {"stop"}));
    add_count(told, at(v, {"tokens_predicted"}));
}

bool tells_error(const Event& event, const json::value& v) {
    const json::value* problem = at(v, {"error"});
    return event.name == "error" || text_at(v, {"object"}) == "error" || text_at(v, {"type"}) == "error" ||
           (problem && !problem->is_null());
}

}  // namespace

Told read_event(Api api, const Event& event) {
    Told told;
    if (event.data == "[DONE]") {
        told.valid = told.end = true;
        return told;
    }
    boost::system::error_code error;
    const json::value value = json::parse(event.data, error);
    if (error || !value.is_object()) return told;
    told.valid = true;
    told.error = tells_error(event, value);
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
            add_text(told, text_at(value, {"text_output"}));
            break;
    }
    return told;
}

}  // namespace load
