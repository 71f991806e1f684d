#include "metrics/finish_reason.hpp"

#include <algorithm>
#include <array>

#include "metrics/catalogue.hpp"

namespace noren::metrics {
namespace {

struct Synonym {
    std::string_view word, folded;
};

constexpr std::array<Synonym, 18> k_synonyms = {{
    {"end_turn", "stop"},  // Anthropic, and the next two
    {"stop_sequence", "stop"},
    {"max_tokens", "length"},
    {"tool_use", "tool_calls"},
    {"refusal", "content_filter"},
    {"model_context_window_exceeded", "length"},
    {"completed", "stop"},  // Responses: the status, or incomplete_details.reason
    {"max_output_tokens", "length"},
    {"eos_token", "stop"},  // TGI
    {"eos", "stop"},        // llama.cpp
    {"word", "stop"},
    {"limit", "length"},
    {"COMPLETE", "stop"},  // Cohere
    {"STOP_SEQUENCE", "stop"},
    {"MAX_TOKENS", "length"},
    {"TOOL_CALL", "tool_calls"},
    {"ERROR_TOXIC", "content_filter"},
    {"function_call", "tool_calls"},  // OpenAI before tools
}};

constexpr std::size_t k_none = k_finish_reasons.size() - 1;
constexpr std::size_t k_other = k_finish_reasons.size() - 2;
static_assert(k_finish_reasons[k_none] == "none" && k_finish_reasons[k_other] == "other");

}  // namespace

std::size_t finish_reason_index(std::optional<std::string_view> word) {
    if (!word) return k_none;
    const auto synonym =
        std::find_if(k_synonyms.begin(), k_synonyms.end(), [&](const Synonym& s) { return s.word == *word; });
    const std::string_view folded = synonym == k_synonyms.end() ? *word : synonym->folded;
    const auto known = std::find(k_finish_reasons.begin(), k_finish_reasons.begin() + k_other, folded);
    return static_cast<std::size_t>(known - k_finish_reasons.begin());
}

}  // namespace noren::metrics
