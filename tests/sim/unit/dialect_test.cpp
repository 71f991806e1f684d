// Every dialect's body parses, carries the promised text and counts, and ends as its engine ends it.

#include "tests/sim/dialects/dialect.hpp"

#include <map>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/sim/token_text.hpp"

using namespace sim;
namespace json = boost::json;

namespace {

Ask ask_for(Api api, bool stream) {
    Ask ask;
    ask.api = api;
    ask.id = "req \"1\"";
    ask.model = "m<1>";
    ask.stream = stream;
    ask.prompt_tokens = 11;
    ask.output_tokens = 9;
    ask.created = 1767225600;
    ask.hit_limit = true;
    return ask;
}

/// A whole stream, choices in lock-step.
Events stream_of(const Ask& ask) {
    const auto dialect = make_dialect(ask);
    Events events;
    dialect->accepted(events);
    for (std::uint32_t first = 0; first < ask.output_tokens; first += ask.tokens_per_event) {
        const std::uint32_t count = std::min(ask.tokens_per_event, ask.output_tokens - first);
        for (std::uint32_t choice = 0; choice < ask.choices; ++choice) {
            dialect->tokens({choice, first, count, first + count == ask.output_tokens}, events);
        }
    }
    dialect->finished({std::chrono::milliseconds(5), std::chrono::milliseconds(8)}, events);
    return events;
}

/// The document in an event; null for [DONE].
json::value data_of(std::string_view event, bool sse) {
    if (!sse) {
        REQUIRE(event.back() == '\n');
        return json::parse(json::string_view(event.data(), event.size() - 1));
    }
    REQUIRE(event.ends_with("\n\n"));
    const auto at = event.find("data:");
    REQUIRE(at != std::string_view::npos);
    std::string_view data = event.substr(at + 5, event.size() - at - 7);
    REQUIRE(data.find('\n') == std::string_view::npos);
    if (data == " [DONE]") return nullptr;
    return json::parse(json::string_view(data.data(), data.size()));
}

/// The member at a path like "choices.0.delta.content"; nullptr if it is not there.
const json::value* at(const json::value& value, std::string_view path) {
    const json::value* here = &value;
    while (here != nullptr && !path.empty()) {
        const auto name = path.substr(0, path.find('.'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        if (here->is_object()) {
            here = here->get_object().if_contains(json::string_view(name.data(), name.size()));
        } else if (here->is_array()) {
            here = here->get_array().if_contains(static_cast<std::size_t>(name[0] - '0'));
        } else {
            here = nullptr;
        }
    }
    return here;
}

std::string text_at(const json::value& value, std::string_view path) {
    const json::value* found = at(value, path);
    return found != nullptr && found->is_string() ? std::string(found->get_string()) : "";
}

std::int64_t number_at(const json::value& value, std::string_view path) {
    const json::value* found = at(value, path);
    return found != nullptr && found->is_int64() ? found->get_int64() : -1;
}

struct Shape {
    Api api;
    bool sse;
    const char* text;  // of a token event
    const char* document_text;
    const char* input;  // in some event
    const char* output;
    const char* document_input;
    const char* document_output;
};

const Shape k_shapes[] = {
    {Api::chat, true, "choices.0.delta.content", "choices.0.message.content", "usage.prompt_tokens",
     "usage.completion_tokens", "usage.prompt_tokens", "usage.completion_tokens"},
    {Api::completions, true, "choices.0.text", "choices.0.text", "usage.prompt_tokens",
     "usage.completion_tokens", "usage.prompt_tokens", "usage.completion_tokens"},
    {Api::responses, true, "delta", "output.0.content.0.text", "response.usage.input_tokens",
     "response.usage.output_tokens", "usage.input_tokens", "usage.output_tokens"},
    {Api::messages, true, "delta.text", "content.0.text", "message.usage.input_tokens", "usage.output_tokens",
     "usage.input_tokens", "usage.output_tokens"},
    {Api::tgi_generate_stream, true, "token.text", "generated_text", "details.input_length",
     "details.generated_tokens", "details.input_length", "details.generated_tokens"},
    {Api::tgi_root, true, "token.text", "0.generated_text", "details.input_length",
     "details.generated_tokens", "0.details.input_length", "0.details.generated_tokens"},
    {Api::ollama_chat, false, "message.content", "message.content", "prompt_eval_count", "eval_count",
     "prompt_eval_count", "eval_count"},
    {Api::ollama_generate, false, "response", "response", "prompt_eval_count", "eval_count",
     "prompt_eval_count", "eval_count"},
    {Api::llamacpp, true, "content", "content", "tokens_evaluated", "tokens_predicted", "tokens_evaluated",
     "tokens_predicted"},
    {Api::triton_stream, true, "text_output", "text_output", nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

TEST_CASE("streams carry every token's text, and the counts") {
    for (const Shape& shape : k_shapes) {
        for (std::uint32_t per_event : {1U, 4U}) {
            Ask ask = ask_for(shape.api, true);
            ask.tokens_per_event = per_event;
            INFO(name_of(ask.api) << ", " << per_event << " tokens an event");
            std::string text;
            std::uint32_t tokens = 0;
            std::int64_t input = -1;
            std::int64_t output = -1;
            for (const Event& event : stream_of(ask)) {
                const json::value data = data_of(event.bytes, shape.sse);
                tokens += event.tokens;
                if (event.tokens > 0) text += text_at(data, shape.text);
                if (event.tokens > 0) CHECK_FALSE(text_at(data, shape.text).empty());
                if (shape.input == nullptr) continue;
                input = std::max(input, number_at(data, shape.input));
                output = std::max(output, number_at(data, shape.output));
            }
            CHECK(text == whole_text(stream_key(ask.id), 0, 9));
            CHECK(tokens == 9);
            const auto usage = make_dialect(ask)->usage();
            CHECK(usage.has_value() == (shape.input != nullptr));
            if (!usage) continue;
            CHECK(input == 11);
            CHECK(output == 9);
            CHECK(usage->prompt_tokens == 11);
            CHECK(usage->completion_tokens == 9);
        }
    }
}

TEST_CASE("documents carry the whole text, and the counts") {
    for (const Shape& shape : k_shapes) {
        const Ask ask = ask_for(shape.api, false);
        INFO(name_of(ask.api));
        const json::value document = json::parse(make_dialect(ask)->document({}));
        CHECK(text_at(document, shape.document_text) == whole_text(stream_key(ask.id), 0, 9));
        if (shape.document_input == nullptr) continue;
        CHECK(number_at(document, shape.document_input) == 11);
        CHECK(number_at(document, shape.document_output) == 9);
    }
}

TEST_CASE("without usage no count appears anywhere") {
    for (const Shape& shape : k_shapes) {
        if (shape.input == nullptr) continue;
        Ask ask = ask_for(shape.api, true);
        ask.report_usage = false;
        INFO(name_of(ask.api));
        CHECK_FALSE(make_dialect(ask)->usage());
        for (const Event& event : stream_of(ask)) {
            const json::value data = data_of(event.bytes, shape.sse);
            CHECK(number_at(data, shape.input) == -1);
            CHECK(number_at(data, shape.output) == -1);
        }
        const json::value document = json::parse(make_dialect(ask)->document({}));
        CHECK(number_at(document, shape.document_input) == -1);
        CHECK(number_at(document, shape.document_output) == -1);
    }
}

TEST_CASE("each stream ends with its engine's own end marker") {
    const auto last = [](Api api) {
        const Events events = stream_of(ask_for(api, true));
        return events.back().bytes;
    };
    CHECK(last(Api::chat) == "data: [DONE]\n\n");
    CHECK(last(Api::completions) == "data: [DONE]\n\n");
    CHECK(last(Api::responses).starts_with("event: response.incomplete\n"));
    CHECK(last(Api::messages).starts_with("event: message_stop\n"));
    CHECK(last(Api::tgi_generate_stream).find(R"("generated_text":")") != std::string::npos);
    CHECK(last(Api::ollama_chat).find(R"("done":true)") != std::string::npos);
    CHECK(last(Api::llamacpp).find(R"("stop":true)") != std::string::npos);
    CHECK(last(Api::triton_stream).ends_with("\"text_output\":\"\"}\n\n"));
}

TEST_CASE("a failure in the middle is told in the engine's words") {
    const auto failure = [](Api api) {
        Events events;
        make_dialect(ask_for(api, true))->failed("it \"broke\"", events);
        std::string all;
        for (const Event& event : events) {
            CHECK(event.tokens == 0);
            all += event.bytes;
        }
        return all;
    };
    CHECK(failure(Api::chat).starts_with(R"(data: {"error": {"message": "it \"broke\"")"));
    CHECK(failure(Api::chat).ends_with("data: [DONE]\n\n"));
    CHECK(failure(Api::messages).starts_with("event: error\n"));
    CHECK(failure(Api::responses).starts_with("event: response.failed\n"));
    CHECK(failure(Api::tgi_generate_stream).starts_with(R"(data:{"error":"it \"broke\"","error_type")"));
    CHECK(failure(Api::ollama_chat) == "{\"error\":\"it \\\"broke\\\"\"}\n");
    CHECK(json::parse(failure(Api::llamacpp).substr(6)).is_object());
    CHECK(json::parse(failure(Api::triton_stream).substr(6)).is_object());
}

TEST_CASE("several choices each have their text; the sum is counted once") {
    for (Api api : {Api::chat, Api::completions}) {
        Ask ask = ask_for(api, true);
        ask.choices = 3;
        ask.continuous_usage = true;
        std::map<std::int64_t, std::string> texts;
        std::int64_t last_count = 0;
        for (const Event& event : stream_of(ask)) {
            const json::value data = data_of(event.bytes, true);
            if (data.is_null()) continue;
            last_count = number_at(data, "usage.completion_tokens");
            CHECK(last_count >= 0);
            if (event.tokens == 0) continue;
            texts[number_at(data, "choices.0.index")] +=
                text_at(data, api == Api::chat ? "choices.0.delta.content" : "choices.0.text");
            CHECK(last_count <= 9);
        }
        CHECK(last_count == 27);
        REQUIRE(texts.size() == 3);
        for (std::uint32_t choice = 0; choice < 3; ++choice) {
            CHECK(texts[choice] == whole_text(stream_key(ask.id), choice, 9));
        }
        const json::value document = json::parse(make_dialect(ask)->document({}));
        CHECK(text_at(document, api == Api::chat ? "choices.2.message.content" : "choices.2.text") ==
              whole_text(stream_key(ask.id), 2, 9));
    }
}

TEST_CASE("the finish reason tells a limit from an end") {
    Ask ask = ask_for(Api::chat, false);
    CHECK(text_at(json::parse(make_dialect(ask)->document({})), "choices.0.finish_reason") == "length");
    ask.hit_limit = false;
    CHECK(text_at(json::parse(make_dialect(ask)->document({})), "choices.0.finish_reason") == "stop");
    ask.api = Api::responses;
    CHECK(text_at(json::parse(make_dialect(ask)->document({})), "status") == "completed");
    CHECK(stream_of(ask).back().bytes.starts_with("event: response.completed\n"));
    ask.hit_limit = true;
    const json::value cut_off = json::parse(make_dialect(ask)->document({}));
    CHECK(text_at(cut_off, "status") == "incomplete");
    CHECK(text_at(cut_off, "incomplete_details.reason") == "max_output_tokens");
    ask.hit_limit = false;
    ask.api = Api::messages;
    CHECK(text_at(json::parse(make_dialect(ask)->document({})), "stop_reason") == "end_turn");
}

TEST_CASE("embeddings and rankings have an item each and only input tokens") {
    Ask ask = ask_for(Api::embeddings, false);
    ask.items = 3;
    const json::value vectors = json::parse(make_dialect(ask)->document({}));
    CHECK(vectors.at("data").as_array().size() == 3);
    CHECK(number_at(vectors, "usage.prompt_tokens") == 11);
    CHECK(number_at(vectors, "usage.completion_tokens") == 0);
    ask.api = Api::rerank;
    const json::value ranking = json::parse(make_dialect(ask)->document({}));
    CHECK(ranking.at("results").as_array().size() == 3);
    CHECK(number_at(ranking, "usage.total_tokens") == 11);
}

TEST_CASE("refusals are JSON in the API's shape") {
    const Refusal refusal(400, "no \"x\"");
    CHECK(text_at(json::parse(refusal_body(Api::chat, refusal)), "error.message") == "no \"x\"");
    CHECK(number_at(json::parse(refusal_body(Api::chat, refusal)), "error.code") == 400);
    CHECK(text_at(json::parse(refusal_body(Api::messages, refusal)), "type") == "error");
    CHECK(text_at(json::parse(refusal_body(Api::tgi_generate, refusal)), "error") == "no \"x\"");
    CHECK(text_at(json::parse(refusal_body(Api::ollama_chat, refusal)), "error") == "no \"x\"");
    CHECK(text_at(json::parse(refusal_body(Api::llamacpp, refusal)), "error.message") == "no \"x\"");
}
