#pragma once
// What one JSON object of an answer says: whether it is evidence of generated output, what it counts, how it
// ends. The API is recognised by the keys, not by the path, so that gateways and renamed endpoints are
// understood as well. To add a dialect: name its keys in answer_schema.cpp, add its clause here, add a case
// to the corpus.

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "metrics/observe/json_tree.hpp"

namespace noren::metrics {

/// Token counts reported by an object; empty: not reported.
struct UsageReport {
    std::optional<std::int64_t> output, input, cached, reasoning;
    bool operator==(const UsageReport&) const = default;

    /// What was said later counts.
    void keep_last(const UsageReport& newer);
    /// What another sequence says of itself, with what this one said. A sum that does not fit is nothing.
    void add(const UsageReport& other);
};

/// What sequences that count for themselves say, added up. Each has its prompt in its account.
struct SequenceSum {
    UsageReport sum, last;
    std::int64_t count = 0;

    void add(const UsageReport& report);
    /// of_each_prompt: how many sequences share a prompt, which then counts once; 0: nobody knows, and the
    /// last one's prompt is told.
    UsageReport of_all(std::int64_t of_each_prompt) const;
};

/// What has to be remembered from event to event: SGLang's and llama.cpp's own streams repeat growing counts,
/// each sequence its own.
struct StreamMemory {
    static constexpr std::size_t k_max_choices = 256;
    std::map<std::int64_t, std::int64_t>
        completion_tokens;                         ///< the highest by choice, of events with a token
    std::map<std::int64_t, UsageReport> reported;  ///< the last by choice
    UsageReport last;                              ///< the last of those
    bool sequence_last = false;                    ///< the last report was of a sequence, not of all
    std::uint64_t missed = 0;                      ///< reports that were one too many to keep
};

/// The event carries at least one generated token.
bool has_token(const JsonValue& event, StreamMemory& memory);

UsageReport usage_of(const JsonValue& object);

/// What an event says of the whole answer. What it says of its sequence alone is remembered instead.
UsageReport whole_usage_of(const JsonValue& event, StreamMemory& memory);

/// Nothing if it does not fit: the numbers are whatever the engine wrote.
std::optional<std::int64_t> sum(std::int64_t a, std::int64_t b);

std::optional<std::string_view> model_of(const JsonValue& object);

/// Calls found(choice index, reason) for each finish reason in the object.
template <typename Found>
void for_each_finish_reason(const JsonValue& object, Found&& found);

bool is_error(const JsonValue& object);

/// The API's own end marker.
bool is_end(const JsonValue& object);

/// Of an event with a token: it says nothing beside, so that another one like it would only be another token.
/// The model does not count, since only the first one does.
bool is_only_token(const JsonValue& event);

// --- details

/// A finish reason of an API that has one per answer.
std::optional<std::string_view> whole_finish_reason(const JsonValue& object);

/// A non-empty string, or nothing.
std::optional<std::string_view> word(const JsonValue& value);

/// An absent index is the only choice's; one that is no number is nobody's (-1).
inline std::int64_t choice_index(const JsonValue& object) {
    const JsonValue index = object["index"];
    return index ? index.integer().value_or(-1) : 0;
}

template <typename Found>
void for_each_finish_reason(const JsonValue& object, Found&& found) {
    if (const JsonValue choices = object["choices"]) {
        if (!choices.is(JsonType::array)) return;
        for (JsonValue choice = choices.first(); choice; choice = choice.next()) {
            if (const auto reason = word(choice["finish_reason"])) found(choice_index(choice), *reason);
        }
        return;
    }
    const bool is_sglang = object["meta_info"].is(JsonType::object);
    if (const auto reason = whole_finish_reason(object)) found(is_sglang ? choice_index(object) : 0, *reason);
}

}  // namespace noren::metrics
