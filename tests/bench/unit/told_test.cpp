#include "tests/bench/load/told.hpp"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

namespace {

using load::Api;
using load::Told;

Told tell(Api api, std::string_view data, std::string_view name = {}) {
    return load::read_event(api, {name, data});
}

std::string text(const Told& told) {
    std::string all;
    for (const Told::Piece& piece : told.pieces)
        all += piece.text;
    return all;
}

}  // namespace

TEST_CASE("OpenAI: what is generated and what is not") {
    CHECK(text(tell(Api::chat, R"({"choices":[{"delta":{"content":"hi"}}]})")) == "hi");
    CHECK(text(tell(Api::completions, R"({"choices":[{"text":"hi"}]})")) == "hi");
    CHECK(text(tell(Api::chat, R"({"choices":[{"message":{"content":"whole"}}]})")) == "whole");
    CHECK(tell(Api::chat, R"({"choices":[{"delta":{"reasoning_content":"hm"}}]})").generated);
    CHECK(tell(Api::chat,
               R"({"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}}]}}]})")
              .generated);
    for (const char* empty : {R"({"choices":[{"delta":{"role":"assistant","content":""}}]})",
                              R"({"choices":[{"delta":{"content":null,"tool_calls":[]}}]})",
                              R"({"choices":[{"delta":{},"finish_reason":"stop"}]})",
                              R"({"choices":[],"usage":{"completion_tokens":5}})"}) {
        INFO(empty);
        CHECK(tell(Api::chat, empty).valid);
        CHECK_FALSE(tell(Api::chat, empty).generated);
    }
    const Told two =
        tell(Api::chat,
             R"({"choices":[{"index":1,"delta":{"content":"b"}},{"index":0,"delta":{"content":"a"}}]})");
    REQUIRE(two.pieces.size() == 2);
    CHECK(two.pieces[0].choice == 1);
    CHECK(two.pieces[1].choice == 0);
    CHECK(tell(Api::chat, R"({"choices":[],"usage":{"completion_tokens":5}})").output_tokens == 5U);
}

TEST_CASE("each API's text, count and end") {
    struct Case {
        Api api;
        const char* data;
        const char* text;
        std::optional<std::uint64_t> tokens;
        bool end;
    };
    const Case cases[] = {
        {Api::chat, "[DONE]", "", std::nullopt, true},
        {Api::responses, R"({"type":"response.output_text.delta","delta":"a"})", "a", std::nullopt, false},
        {Api::responses, R"({"type":"response.output_text.done","text":"again"})", "", std::nullopt, false},
        {Api::responses,
         R"({"type":"response.completed","response":{"usage":{"output_tokens":3},"output":[]}})", "", 3,
         true},
        {Api::responses, R"({"type":"response.incomplete","response":{}})", "", std::nullopt, true},
        {Api::responses,
         R"({"object":"response","output":[{"content":[{"text":"w"}]}],"usage":{"output_tokens":1}})", "w", 1,
         false},
        {Api::messages, R"({"type":"message_start","message":{"usage":{"output_tokens":1}}})", "",
         std::nullopt, false},
        {Api::messages, R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}})", "a",
         std::nullopt, false},
        {Api::messages, R"({"type":"content_block_delta","delta":{"thinking":"t"}})", "t", std::nullopt,
         false},
        {Api::messages, R"({"type":"message_delta","usage":{"output_tokens":9}})", "", 9, false},
        {Api::messages, R"({"type":"message_stop"})", "", std::nullopt, true},
        {Api::messages, R"({"type":"message","content":[{"text":"w"}],"usage":{"output_tokens":2}})", "w", 2,
         false},
        {Api::tgi, R"({"token":{"text":"a"},"generated_text":null})", "a", std::nullopt, false},
        {Api::tgi, R"({"token":{"text":"b"},"generated_text":"ab","details":{"generated_tokens":2}})", "b", 2,
         true},
        {Api::tgi, R"({"generated_text":"ab"})", "ab", std::nullopt, true},
        {Api::ollama, R"({"message":{"content":"a"},"done":false})", "a", std::nullopt, false},
        {Api::ollama, R"({"response":"","done":true,"eval_count":4})", "", 4, true},
        {Api::llamacpp, R"({"content":"a","stop":false,"tokens_predicted":1})", "a", 1, false},
        {Api::llamacpp, R"({"content":"","stop":true,"tokens_predicted":7})", "", 7, true},
        {Api::triton, R"({"text_output":"a"})", "a", std::nullopt, false},
    };
    for (const Case& c : cases) {
        INFO(c.data);
        const Told told = tell(c.api, c.data);
        CHECK(told.valid);
        CHECK(text(told) == c.text);
        CHECK(told.output_tokens == c.tokens);
        CHECK(told.end == c.end);
        CHECK_FALSE(told.error);
    }
    CHECK(tell(Api::tgi, R"({"token":{"text":"","special":true}})").generated);
}

TEST_CASE("errors inside a stream, and what only looks like one") {
    CHECK(tell(Api::chat, R"({"error":{"message":"x"}})").error);
    CHECK(tell(Api::chat, R"({"object":"error","message":"x"})").error);
    CHECK(tell(Api::messages, R"({"type":"error"})").error);
    CHECK(tell(Api::llamacpp, R"({"code":500})", "error").error);
    const Told failed = tell(Api::responses, R"({"type":"response.failed","response":{}})");
    CHECK(failed.error);
    CHECK(failed.end);
    CHECK_FALSE(tell(Api::chat, R"({"error":null,"choices":[]})").error);
    CHECK_FALSE(tell(Api::chat, R"({"choices":[{"delta":{"content":"event: error"}}]})").error);
    for (const char* broken : {"", "{", "[]", "7", "nonsense", R"({"a":1}})"})
        CHECK_FALSE(tell(Api::chat, broken).valid);
}

TEST_CASE("requests say what their API wants to hear") {
    namespace json = boost::json;
    struct Case {
        const char* name;
        const char* path;
        const char* prompt;  // JSON pointer
        const char* tokens;
    };
    const Case cases[] = {
        {"chat", "/v1/chat/completions", "/messages/0/content", "/max_tokens"},
        {"completions", "/v1/completions", "/prompt", "/max_tokens"},
        {"responses", "/v1/responses", "/input", "/max_output_tokens"},
        {"messages", "/v1/messages", "/messages/0/content", "/max_tokens"},
        {"tgi", "/generate_stream", "/inputs", "/parameters/max_new_tokens"},
        {"ollama", "/api/chat", "/messages/0/content", "/options/num_predict"},
        {"llamacpp", "/completion", "/prompt", "/n_predict"},
        {"triton", "/v2/models/m/generate_stream", "/text_input", "/max_tokens"},
    };
    const load::Ask ask{"say \"it\"", "m", 17, true};
    for (const Case& c : cases) {
        INFO(c.name);
        const auto api = load::api_of(c.name);
        REQUIRE(api);
        CHECK(load::name_of(*api) == c.name);
        CHECK(load::path_of(*api, ask) == c.path);
        const json::value body = json::parse(load::body_of(*api, ask));
        CHECK(body.at_pointer(c.prompt).as_string() == "say \"it\"");
        CHECK(body.at_pointer(c.tokens).as_int64() == 17);
        if (c.name != std::string_view("tgi")) CHECK(body.at("stream").as_bool());
    }
    CHECK(load::path_of(Api::tgi, {"", "m", 1, false}) == "/generate");
    CHECK_FALSE(load::api_of("Chat"));
}
