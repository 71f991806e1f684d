#include "metrics/observe/token_rules.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace noren::metrics {
namespace {

std::string_view type_of(const JsonValue& object) {
    return object["type"].text().value_or(std::string_view());
}

/// Generated text: a non-empty string, or parts of which one holds some.
bool has_text(const JsonValue& value) {
    if (value.is(JsonType::string)) return value.truthy();
    if (value.is(JsonType::array)) {
        for (JsonValue part = value.first(); part; part = part.next())
            if (has_text(part)) return true;
        return false;
    }
    return value.is(JsonType::object) && (has_text(value["text"]) || has_text(value["thinking"]));
}

bool any_text(const JsonValue& object, std::initializer_list<JsonKey> keys) {
    for (const JsonKey key : keys)
        if (has_text(object[key])) return true;
    return false;
}

bool is_filled_list(const JsonValue& value) {
    return value.is(JsonType::array) && value.truthy();
}

/// Arguments come as a growing string, or whole as an object.
bool has_call(const JsonValue& function) {
    if (!function.is(JsonType::object)) return false;
    const JsonValue arguments = function["arguments"];
    const bool has_arguments = arguments.is(JsonType::string) ? arguments.truthy() : arguments.present();
    return word(function["name"]).has_value() || has_arguments;
}

bool message_has_token(const JsonValue& message) {
    if (any_text(message, {"content", "reasoning_content", "reasoning", "refusal"})) return true;
    if (has_call(message["function_call"])) return true;
    const JsonValue calls = message["tool_calls"];
    if (!calls.is(JsonType::array)) return false;
    for (JsonValue call = calls.first(); call; call = call.next())
        if (has_call(call["function"])) return true;
    return false;
}

bool choice_has_token(const JsonValue& choice) {
    if (has_text(choice["text"]) || message_has_token(choice["delta"]) ||
        message_has_token(choice["message"]))
        return true;
    // Ids and log-probabilities are tokens even where the text is withheld.
    if (is_filled_list(choice["token_ids"])) return true;
    const JsonValue logprobs = choice["logprobs"];
    return is_filled_list(logprobs["content"]) || is_filled_list(logprobs["refusal"]) ||
           is_filled_list(logprobs["tokens"]);
}

bool responses_has_token(const JsonValue& event, std::string_view type) {
    if (type.ends_with(".delta")) return has_text(event["delta"]);
    const JsonValue item = event["item"];
    return type == "response.output_item.added" && type_of(item).ends_with("_call") &&
           word(item["name"]).has_value();
}

bool block_start_has_token(const JsonValue& block) {
    if (type_of(block).ends_with("tool_use")) return word(block["name"]).has_value();
    return any_text(block, {"text", "thinking"});
}

bool cohere_has_token(const JsonValue& event) {
    const JsonValue message = event["delta"]["message"];
    const JsonValue function = message["tool_calls"]["function"];
    const JsonValue content = message["content"];
    return (content.is(JsonType::object) && has_text(content)) || has_text(message["tool_plan"]) ||
           word(function["name"]).has_value() || has_text(function["arguments"]);
}

/// SGLang's text is cumulative; only a count that grew says that there is more of it.
bool sglang_has_token(const JsonValue& event, StreamMemory& memory) {
    const auto count = event["meta_info"]["completion_tokens"].integer();
    if (!count) return has_text(event["text"]);
    const std::int64_t choice = choice_index(event);
    if (memory.completion_tokens.size() >= StreamMemory::k_max_choices &&
        !memory.completion_tokens.contains(choice))
        return false;
    std::int64_t& seen = memory.completion_tokens[choice];
    const bool grew = *count > seen;
    if (grew) seen = *count;
    return grew;
}

bool ollama_has_token(const JsonValue& event) {
    const JsonValue message = event["message"];
    return any_text(message, {"content", "thinking"}) || is_filled_list(message["tool_calls"]) ||
           any_text(event, {"response", "thinking"}) || is_filled_list(event["logprobs"]);
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    for (const std::string_view candidate : words)
        if (word == candidate) return true;
    return false;
}

/// The first that is there and not null.
JsonValue first_present(std::initializer_list<JsonValue> values) {
    for (const JsonValue& value : values)
        if (value.present()) return value;
    return {};
}

bool is_count(const std::optional<std::int64_t>& value) {
    return value && *value != 0;
}

UsageReport openai_usage(const JsonValue& raw) {
    // Cohere: what was generated before what is billed.
    const JsonValue nested = first_present({raw["tokens"], raw["billed_units"]});
    const JsonValue counts = nested.is(JsonType::object) ? nested : raw;
    const JsonValue prompt = first_present({raw["prompt_tokens_details"], raw["input_tokens_details"]});
    const JsonValue completion =
        first_present({raw["completion_tokens_details"], raw["output_tokens_details"]});
    UsageReport usage;
    usage.output = first_present({counts["completion_tokens"], counts["output_tokens"]}).integer();
    usage.input = first_present({counts["prompt_tokens"], counts["input_tokens"]}).integer();
    usage.cached =
        first_present({prompt["cached_tokens"], raw["cache_read_input_tokens"], raw["cached_tokens"]})
            .integer();
    usage.reasoning = first_present({completion["reasoning_tokens"], raw["reasoning_tokens"]}).integer();
    if (!usage.output && !usage.input) usage.input = raw["total_tokens"].integer();  // rerank
    // All zero is a placeholder, not a count.
    return is_count(usage.output) || is_count(usage.input) ? usage : UsageReport{};
}

/// llama.cpp's own measurement fills what its usage did not say.
void fill_from_timings(UsageReport& usage, const JsonValue& timings) {
    const auto cached = timings["cache_n"].integer();
    const auto prompt = timings["prompt_n"].integer();
    if (!usage.output) usage.output = timings["predicted_n"].integer();
    if (!usage.cached) usage.cached = cached;
    if (!usage.input && cached && prompt) usage.input = sum(*cached, *prompt);
}

/// With best_of, those that were not the best are generated as well.
std::optional<std::int64_t> tgi_output(const JsonValue& details) {
    std::optional<std::int64_t> output = details["generated_tokens"].integer();
    const JsonValue others = details["best_of_sequences"];
    if (!others.is(JsonType::array)) return output;
    for (JsonValue other = others.first(); other && output; other = other.next())
        output = sum(*output, other["generated_tokens"].integer().value_or(0));
    return output;
}

}  // namespace

void UsageReport::keep_last(const UsageReport& newer) {
    const auto keep = [](auto& kept, const auto& later) {
        if (later) kept = later;
    };
    keep(output, newer.output);
    keep(input, newer.input);
    keep(cached, newer.cached);
    keep(reasoning, newer.reasoning);
}

void UsageReport::add(const UsageReport& other) {
    const auto add_to = [](auto& kept, const auto& more) {
        if (kept && more) kept = sum(*kept, *more);
    };
    add_to(output, other.output);
    add_to(input, other.input);
    add_to(cached, other.cached);
    add_to(reasoning, other.reasoning);
}

void SequenceSum::add(const UsageReport& report) {
    if (count++ == 0) {
        sum = report;
    } else {
        sum.add(report);
    }
    last = report;
}

UsageReport SequenceSum::of_all(std::int64_t of_each_prompt) const {
    UsageReport all = sum;
    if (count <= 1) return all;
    if (of_each_prompt <= 0) {
        all.input = last.input;
        all.cached = last.cached;
        return all;
    }
    const std::int64_t shared = std::min(of_each_prompt, count);
    if (all.input) *all.input /= shared;
    if (all.cached) *all.cached /= shared;
    return all;
}

std::optional<std::int64_t> sum(std::int64_t a, std::int64_t b) {
    constexpr auto k_most = std::numeric_limits<std::int64_t>::max(), k_least = -k_most;
    if (b > 0 ? a > k_most - b : a < k_least - b) return std::nullopt;
    return a + b;
}

std::optional<std::string_view> word(const JsonValue& value) {
    return value.truthy() ? value.text() : std::nullopt;
}

bool has_token(const JsonValue& event, StreamMemory& memory) {
    const std::string_view type = type_of(event);
    if (const JsonValue choices = event["choices"]) {
        if (!choices.is(JsonType::array)) return false;
        for (JsonValue choice = choices.first(); choice; choice = choice.next())
            if (choice.is(JsonType::object) && choice_has_token(choice)) return true;
        return false;
    }
    if (type.starts_with("response.")) return responses_has_token(event, type);
    if (type == "content_block_delta") return any_text(event["delta"], {"text", "thinking", "partial_json"});
    if (type == "content_block_start") return block_start_has_token(event["content_block"]);
    if (type == "transcript.text.delta") return has_text(event["delta"]);
    if (is_one_of(type, {"content-start", "content-delta", "tool-plan-delta", "tool-call-start",
                         "tool-call-delta"}))
        return cohere_has_token(event);
    if (event["token"].is(JsonType::object)) return event["token"]["id"].is(JsonType::integer);  // TGI
    if (event["meta_info"].is(JsonType::object)) return sglang_has_token(event, memory);
    if (event["text_output"]) return has_text(event["text_output"]);  // Triton
    if (event["stop"] && event["content"])                            // llama.cpp
        return has_text(event["content"]) || is_filled_list(event["tokens"]);
    if (event["done"]) return ollama_has_token(event);
    return false;
}

UsageReport usage_of(const JsonValue& object) {
    if (!object.may_have({"meta_info", "details", "eval_count", "prompt_eval_count", "usage", "response",
                          "message", "delta", "tokens_predicted", "timings"}))
        return {};
    if (const JsonValue meta = object["meta_info"]; meta.is(JsonType::object))
        return {meta["completion_tokens"].integer(), meta["prompt_tokens"].integer(),
                meta["cached_tokens"].integer(), meta["reasoning_tokens"].integer()};
    if (const JsonValue details = object["details"]; details.is(JsonType::object))
        return {tgi_output(details), details["input_length"].integer(), {}, {}};
    if (object["eval_count"] || object["prompt_eval_count"])
        return {object["eval_count"].integer(), object["prompt_eval_count"].integer(), {}, {}};
    UsageReport usage;
    const JsonValue raw = first_present(
        {object["usage"], object["response"]["usage"], object["message"]["usage"], object["delta"]["usage"]});
    if (raw.is(JsonType::object)) usage = openai_usage(raw);
    if (object["tokens_predicted"])
        usage = {object["tokens_predicted"].integer(), object["tokens_evaluated"].integer(), {}, {}};
    if (const JsonValue timings = object["timings"]; timings.is(JsonType::object))
        fill_from_timings(usage, timings);
    return usage;
}

UsageReport whole_usage_of(const JsonValue& event, StreamMemory& memory) {
    const UsageReport usage = usage_of(event);
    if (usage == UsageReport{}) return usage;
    memory.sequence_last = event.may_have({"meta_info", "tokens_predicted"}) &&
                           (event["meta_info"].is(JsonType::object) || event["tokens_predicted"]);
    if (!memory.sequence_last) return usage;
    const std::int64_t choice = choice_index(event);
    memory.last.keep_last(usage);
    if (memory.reported.size() < StreamMemory::k_max_choices || memory.reported.contains(choice)) {
        memory.reported[choice].keep_last(usage);
    } else {
        ++memory.missed;
    }
    return {};
}

std::optional<std::string_view> model_of(const JsonValue& object) {
    for (const JsonValue& value :
         {object["model"], object["response"]["model"], object["message"]["model"], object["model_name"]})
        if (const auto name = word(value)) return name;
    return std::nullopt;
}

std::optional<std::string_view> whole_finish_reason(const JsonValue& object) {
    const std::string_view type = type_of(object);
    JsonValue response;
    if (is_one_of(type, {"response.completed", "response.incomplete", "response.failed"})) {
        response = object["response"];
    } else if (object["object"] == "response") {
        response = object;
    }
    if (response.is(JsonType::object)) {
        const auto reason = word(response["incomplete_details"]["reason"]);
        return reason ? reason : word(response["status"]);
    }
    if (const JsonValue meta = object["meta_info"]; meta.is(JsonType::object))
        return word(meta["finish_reason"]["type"]);
    if (const JsonValue details = object["details"]; details.is(JsonType::object))
        return word(details["finish_reason"]);
    // llama.cpp says "none" until it has stopped.
    const JsonValue stop_type = object["stop_type"] == "none" ? JsonValue() : object["stop_type"];
    for (const JsonValue& value :
         {object["done_reason"], stop_type, object["stop_reason"], object["finish_reason"],
          object["delta"]["stop_reason"], object["delta"]["finish_reason"]})
        if (const auto reason = word(value)) return reason;
    return std::nullopt;
}

bool is_error(const JsonValue& object) {
    if (!object.may_have({"error", "object", "type"})) return false;
    return object["error"].truthy() || object["object"] == "error" ||
           is_one_of(type_of(object), {"error", "response.failed"}) ||
           (object["object"] == "response" && object["status"] == "failed");
}

bool is_end(const JsonValue& object) {
    if (!object.may_have({"type", "done", "stop", "token"})) return false;
    const JsonValue done = object["done"], stop = object["stop"];
    return is_one_of(type_of(object), {"response.completed", "response.incomplete", "response.failed",
                                       "message_stop", "message-end", "transcript.text.done"}) ||
           (done.is(JsonType::boolean) && done.truthy()) ||
           (stop.is(JsonType::boolean) && stop.truthy() && object["content"]) ||
           (object["token"] && object["generated_text"].is(JsonType::string));
}

bool is_only_token(const JsonValue& event) {
    bool has_reason = false;
    for_each_finish_reason(event, [&](std::int64_t, std::string_view) { has_reason = true; });
    const bool is_sglang = event["meta_info"].present();  // counts from event to event
    return !has_reason && !is_sglang && usage_of(event) == UsageReport() && !is_error(event) &&
           !is_end(event);
}

}  // namespace noren::metrics
