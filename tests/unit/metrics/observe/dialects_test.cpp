// What is a token event, and what is not, in each API. (The corpus has whole answers; here are the edges.)

#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/observe/observed.hpp"

using namespace noren::metrics;
using namespace noren::metrics::testing;

namespace {

/// A stream of this one event has a token.
bool is_token(std::string_view event) {
    return observed("data: " + std::string(event) + "\n\n").token_events == 1;
}

bool is_chat_token(std::string_view delta) {
    return observed(chat(delta)).token_events == 1;
}

}  // namespace

TEST_CASE("dialect: OpenAI chat") {
    CHECK(is_chat_token(R"({"role":"assistant","content":"soup"})"));
    CHECK(is_chat_token(R"({"content":" "})"));
    CHECK(is_chat_token(R"({"reasoning_content":"hm"})"));
    CHECK(is_chat_token(R"({"reasoning":"hm"})"));
    CHECK(is_chat_token(R"({"refusal":"no"})"));
    CHECK(is_chat_token(R"({"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]})"));
    CHECK(is_chat_token(R"({"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]})"));
    CHECK(is_chat_token(R"({"tool_calls":[{"function":{"arguments":"{"}}]})"));
    CHECK(is_chat_token(R"({"tool_calls":[{"function":{"arguments":{"city":"x"}}}]})"));
    CHECK(is_chat_token(R"({"function_call":{"name":"f"}})"));

    CHECK_FALSE(is_chat_token(R"({"role":"assistant","content":""})"));
    CHECK_FALSE(is_chat_token(R"({"role":"assistant","content":null})"));
    CHECK_FALSE(is_chat_token(R"({"content":[]})"));
    CHECK_FALSE(is_chat_token(R"({"content":[{"type":"text","text":""}]})"));
    CHECK_FALSE(is_chat_token(R"({"content":7})"));
    CHECK_FALSE(is_chat_token(R"({"tool_calls":[{"id":"call_1","type":"function","index":0}]})"));
    CHECK_FALSE(is_chat_token(R"({"tool_calls":[{"function":{"name":null,"arguments":""}}]})"));
    CHECK_FALSE(is_chat_token(R"({"tool_calls":[]})"));
    CHECK_FALSE(is_chat_token("{}"));
    CHECK_FALSE(is_chat_token("null"));
    CHECK_FALSE(is_chat_token(R"({"other":{"content":"soup"}})"));

    CHECK(is_token(R"({"choices":[{"delta":{}},{"index":1,"delta":{"content":"x"}}]})"));
    CHECK(is_token(R"({"choices":[{"delta":{},"token_ids":[7]}]})"));
    CHECK(is_token(R"({"choices":[{"delta":{},"logprobs":{"content":[{"token":"x"}]}}]})"));
    CHECK_FALSE(
        is_token(R"({"choices":[{"delta":{},"token_ids":[],"logprobs":{"content":[],"refusal":null}}]})"));
    CHECK_FALSE(is_token(R"({"choices":[],"usage":{"completion_tokens":7}})"));
    CHECK_FALSE(is_token(R"({"choices":{"delta":{"content":"x"}}})"));
    CHECK_FALSE(is_token(R"({"prompt_token_ids":[1],"choices":[{"delta":{}}]})"));
}

TEST_CASE("dialect: OpenAI completions") {
    CHECK(is_token(R"({"choices":[{"text":"soup"}]})"));
    CHECK(is_token(R"({"choices":[{"text":"","token_ids":[1,2]}]})"));
    CHECK_FALSE(is_token(R"({"choices":[{"text":"","finish_reason":"stop"}]})"));
    CHECK_FALSE(is_token(R"({"text":"soup"})"));
}

TEST_CASE("dialect: Responses") {
    CHECK(is_token(R"({"type":"response.output_text.delta","delta":"soup"})"));
    CHECK(is_token(R"({"type":"response.function_call_arguments.delta","delta":"{"})"));
    CHECK(is_token(R"({"type":"response.output_item.added","item":{"type":"function_call","name":"f"}})"));
    CHECK_FALSE(is_token(R"({"type":"response.output_text.delta","delta":""})"));
    CHECK_FALSE(is_token(R"({"type":"response.output_text.done","text":"soup"})"));
    CHECK_FALSE(is_token(R"({"type":"response.output_item.added","item":{"type":"message","name":"f"}})"));
    CHECK_FALSE(is_token(R"({"type":"response.created","response":{"output":[{"text":"x"}]}})"));
}

TEST_CASE("usage is read from a response however it ended") {
    for (const char* end : {"completed", "incomplete", "failed"}) {
        INFO(end);
        const auto seen = observed(
            "data: {\"type\":\"response.output_text.delta\",\"delta\":\"soup\"}\n\n"
            "data: {\"type\":\"response." +
            std::string(end) + "\",\"response\":{\"usage\":{\"input_tokens\":11,\"output_tokens\":7}}}\n\n");
        CHECK(seen.output_tokens == 7);
        CHECK(seen.input_tokens == 11);
        CHECK(seen.complete);
        CHECK(seen.error == (std::string(end) == "failed"));
    }
}

TEST_CASE("usage that comes in parts is put together, and needs no choices beside it") {
    const auto parts = observed(
        "data: "
        "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n"
        "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"soup\"}}\n\n"
        "data: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\n");
    CHECK(parts.input_tokens == 25);
    CHECK(parts.output_tokens == 15);
    for (const char* choices : {"", "\"choices\":[],", "\"choices\":null,"}) {
        INFO(choices);
        const auto seen = observed(chat(R"({"content":"soup"})") + "data: {" + choices +
                                   "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n");
        CHECK(seen.output_tokens == 2);
        CHECK(seen.token_events == 1);
    }
}

TEST_CASE("dialect: Anthropic") {
    CHECK(is_token(R"({"type":"content_block_delta","delta":{"type":"text_delta","text":"soup"}})"));
    CHECK(is_token(R"({"type":"content_block_delta","delta":{"thinking":"hm"}})"));
    CHECK(is_token(R"({"type":"content_block_delta","delta":{"partial_json":"{"}})"));
    CHECK(is_token(R"({"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}})"));
    CHECK_FALSE(is_token(R"({"type":"content_block_delta","delta":{"partial_json":""}})"));
    CHECK_FALSE(
        is_token(R"({"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}})"));
    CHECK_FALSE(is_token(R"({"type":"content_block_start","content_block":{"type":"text","text":""}})"));
    CHECK_FALSE(is_token(R"({"type":"ping"})"));
    CHECK_FALSE(is_token(R"({"type":"message_start","message":{"content":[]}})"));
    CHECK(observed("event: error\ndata: {\"type\":\"overloaded\"}\n\n").error);
    CHECK(observed("data: {\"type\":\"message_stop\"}\n\n").complete);
}

TEST_CASE("dialect: Cohere") {
    CHECK(is_token(R"({"type":"content-delta","delta":{"message":{"content":{"text":"soup"}}}})"));
    CHECK(is_token(R"({"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will"}}})"));
    CHECK(is_token(
        R"({"type":"tool-call-start","delta":{"message":{"tool_calls":{"function":{"name":"f"}}}}})"));
    CHECK(is_token(
        R"({"type":"tool-call-delta","delta":{"message":{"tool_calls":{"function":{"arguments":"{"}}}}})"));
    CHECK_FALSE(
        is_token(R"({"type":"content-start","delta":{"message":{"content":{"text":"","type":"text"}}}})"));
    CHECK_FALSE(is_token(R"({"type":"message-start","delta":{"message":{"role":"assistant"}}})"));
}

TEST_CASE("dialect: Ollama, llama.cpp, TGI, Triton, transcription") {
    CHECK(is_token(R"({"message":{"content":"soup"},"done":false})"));
    CHECK(is_token(R"({"response":"soup","done":true})"));
    CHECK(is_token(R"({"message":{"content":"","tool_calls":[{"function":{"name":"f"}}]},"done":false})"));
    CHECK_FALSE(is_token(R"({"message":{"content":""},"done":true})"));
    CHECK_FALSE(is_token(R"({"message":{"content":"soup"}})"));  // nobody's event

    CHECK(is_token(R"({"content":"soup","stop":false})"));
    CHECK(is_token(R"({"content":"","tokens":[5],"stop":false})"));
    CHECK_FALSE(is_token(R"({"content":"","tokens":[],"stop":true})"));

    CHECK(is_token(R"({"token":{"id":5,"text":""},"generated_text":null})"));
    CHECK_FALSE(is_token(R"({"token":{"text":"soup"}})"));

    CHECK(is_token(R"({"text_output":"soup"})"));
    CHECK_FALSE(is_token(R"({"text_output":""})"));
    CHECK(is_token(R"({"type":"transcript.text.delta","delta":"soup"})"));
    CHECK_FALSE(is_token(R"({"type":"transcript.text.done","text":"soup"})"));
}

TEST_CASE("dialect: SGLang's text is cumulative; the count of each choice decides") {
    const auto event = [](int index, int count) {
        return R"(data: {"text":"soup","index":)" + std::to_string(index) +
               R"(,"meta_info":{"completion_tokens":)" + std::to_string(count) + "}}\n\n";
    };
    CHECK(observed(event(0, 1) + event(0, 2) + event(0, 2)).token_events == 2);
    CHECK(observed(event(0, 1) + event(1, 1) + event(0, 1) + event(1, 5)).token_events == 3);
    CHECK(observed(event(0, 0)).token_events == 0);
    CHECK(observed("data: {\"text\":\"soup\",\"meta_info\":{}}\n\n").token_events == 1);
}
