#include "metrics/observe/answer_schema.hpp"

#include <initializer_list>
#include <vector>

namespace noren::metrics {
namespace {

using Members = std::vector<JsonSchema::Member>;

/// Members that are kept as leaves.
Members leaves(std::initializer_list<JsonKey> keys) {
    Members members;
    for (const JsonKey key : keys)
        members.push_back({key, nullptr});
    return members;
}

Members joined(Members a, const Members& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

/// Generated text: a string, or parts that hold one, to any depth.
const JsonSchema& text() {
    static JsonSchema schema;
    // Parts of parts: the schema refers to itself.
    static const bool closed = [] {
        schema = JsonSchema({{"text", &schema}, {"thinking", &schema}});
        return true;
    }();
    static_cast<void>(closed);
    return schema;
}

const JsonSchema& usage() {
    static const JsonSchema counts{
        leaves({"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"})};
    static const JsonSchema cached{leaves({"cached_tokens"})};
    static const JsonSchema reasoning{leaves({"reasoning_tokens"})};
    static const JsonSchema schema{
        joined(leaves({"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens",
                       "cache_read_input_tokens", "cached_tokens", "reasoning_tokens"}),
               {{"tokens", &counts},
                {"billed_units", &counts},
                {"prompt_tokens_details", &cached},
                {"input_tokens_details", &cached},
                {"completion_tokens_details", &reasoning},
                {"output_tokens_details", &reasoning}})};
    return schema;
}

/// A call that the model makes.
const JsonSchema& function() {
    static const JsonSchema schema{{{"name", nullptr}, {"arguments", &text()}}};
    return schema;
}

const JsonSchema& tool_calls() {
    static const JsonSchema schema{{{"function", &function()}}};
    return schema;
}

/// A chat message or a piece of one.
const JsonSchema& message() {
    static const JsonSchema schema{{{"content", &text()},
                                    {"reasoning_content", &text()},
                                    {"reasoning", &text()},
                                    {"refusal", &text()},
                                    {"thinking", &text()},
                                    {"tool_plan", &text()},
                                    {"function_call", &function()},
                                    {"tool_calls", &tool_calls()},
                                    {"usage", &usage()},
                                    {"model", nullptr}}};
    return schema;
}

const JsonSchema& choices() {
    static const JsonSchema logprobs{leaves({"content", "refusal", "tokens"})};
    static const JsonSchema schema{{{"index", nullptr},
                                    {"finish_reason", nullptr},
                                    {"token_ids", nullptr},
                                    {"text", &text()},
                                    {"delta", &message()},
                                    {"message", &message()},
                                    {"logprobs", &logprobs}}};
    return schema;
}

/// `delta` at the top: Responses (a string), Anthropic, Cohere.
const JsonSchema& delta() {
    static const JsonSchema schema{{{"text", &text()},
                                    {"thinking", &text()},
                                    {"partial_json", &text()},
                                    {"stop_reason", nullptr},
                                    {"finish_reason", nullptr},
                                    {"usage", &usage()},
                                    {"message", &message()}}};
    return schema;
}

const JsonSchema& incomplete_details() {
    static const JsonSchema schema{leaves({"reason"})};
    return schema;
}

/// `response` at the top: Responses (an object), Ollama (text).
const JsonSchema& response() {
    static const JsonSchema schema{{{"model", nullptr},
                                    {"status", nullptr},
                                    {"text", &text()},
                                    {"thinking", &text()},
                                    {"usage", &usage()},
                                    {"incomplete_details", &incomplete_details()}}};
    return schema;
}

const JsonSchema& meta_info() {
    static const JsonSchema finish{leaves({"type"})};
    static const JsonSchema schema{
        joined(leaves({"completion_tokens", "prompt_tokens", "cached_tokens", "reasoning_tokens"}),
               {{"finish_reason", &finish}})};
    return schema;
}

}  // namespace

const JsonSchema& answer_schema() {
    static const JsonSchema typed{
        joined(leaves({"type", "name"}), {{"text", &text()}, {"thinking", &text()}})};
    static const JsonSchema token{leaves({"id"})};
    static const JsonSchema sequences{leaves({"generated_tokens"})};
    static const JsonSchema details{joined(leaves({"generated_tokens", "input_length", "finish_reason"}),
                                           {{"best_of_sequences", &sequences}})};
    static const JsonSchema timings{leaves({"cache_n", "prompt_n", "predicted_n"})};
    static const JsonSchema schema{joined(leaves({"type",
                                                  "object",
                                                  "status",
                                                  "model",
                                                  "model_name",
                                                  "error",
                                                  "done",
                                                  "stop",
                                                  "index",
                                                  "logprobs",
                                                  "tokens",
                                                  "generated_text",
                                                  "eval_count",
                                                  "prompt_eval_count",
                                                  "tokens_predicted",
                                                  "tokens_evaluated",
                                                  "stop_type",
                                                  "done_reason",
                                                  "stop_reason",
                                                  "finish_reason"}),
                                          {{"choices", &choices()},
                                           {"delta", &delta()},
                                           {"item", &typed},
                                           {"content_block", &typed},
                                           {"token", &token},
                                           {"meta_info", &meta_info()},
                                           {"text", &text()},
                                           {"text_output", &text()},
                                           {"content", &text()},
                                           {"thinking", &text()},
                                           {"message", &message()},
                                           {"response", &response()},
                                           {"details", &details},
                                           {"usage", &usage()},
                                           {"timings", &timings},
                                           {"incomplete_details", &incomplete_details()}})};
    return schema;
}

const JsonSchema& request_schema() {
    static const JsonSchema nested{leaves({"max_new_tokens", "num_predict", "n", "best_of"})};
    static const JsonSchema schema{
        joined(leaves({"model", "stream", "n", "n_cmpl", "best_of", "max_completion_tokens",
                       "max_output_tokens", "max_tokens", "max_new_tokens", "n_predict", "num_predict"}),
               {{"parameters", &nested},
                {"options", &nested},
                {"sampling_params", &nested},
                {"prompt", nullptr, true},
                {"prompt_embeds", nullptr, true},
                {"text", nullptr, true},
                {"input_ids", nullptr, true}})};
    return schema;
}

}  // namespace noren::metrics
