#include "metrics/observe/request_observer.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "metrics/observe/answer_schema.hpp"
#include "metrics/observe/form_fields.hpp"
#include "metrics/observe/json_sieve.hpp"
#include "metrics/observe/token_rules.hpp"

namespace noren::metrics {
namespace {

std::optional<std::int64_t> first_count(std::initializer_list<JsonValue> values) {
    for (const JsonValue& value : values)
        if (const auto count = value.integer()) return count;
    return std::nullopt;
}

/// One prompt, unless it is a list of them: a list with numbers in it is one prompt's token ids.
std::int64_t prompts_in(const JsonValue& prompt) {
    const auto elements = prompt.elements();
    return elements && !elements->has_number ? std::max<std::int64_t>(elements->count, 1) : 1;
}

/// Prompts, times what is generated for each.
void read_choices(const JsonValue& body, RequestFacts& facts) {
    constexpr std::int64_t k_most = 1'000'000;  // far beyond what an engine takes, and no product overflows
    std::int64_t prompts = 1;
    bool said = false;
    for (const JsonValue& list : {body["prompt"], body["prompt_embeds"], body["text"], body["input_ids"]}) {
        said = said || list.elements();
        prompts = std::max(prompts, std::min(prompts_in(list), k_most));
    }
    // Of a batch each prompt may have its own, all with the same n.
    const JsonValue sampling = body["sampling_params"];
    const JsonValue first = sampling.is(JsonType::array) ? sampling.first() : sampling;
    std::int64_t each = 1;
    for (const JsonValue& value : {body["n"], body["n_cmpl"], body["best_of"], first["n"],
                                   body["parameters"]["n"], body["parameters"]["best_of"]}) {
        const auto n = value.integer();
        said = said || n;
        each = std::max(each, std::min(n.value_or(1), k_most));
    }
    if (said) facts.choices = prompts * each;
    facts.of_each_prompt = each;
}

}  // namespace

struct RequestObserver::State {
    /// A body without a type, or with a wrong one as curl -d sends it, is looked at as JSON too.
    explicit State(std::string_view content_type) {
        if (FormFields::is_form(content_type)) form.emplace(content_type);
    }

    JsonSieve sieve{request_schema()};
    std::optional<FormFields> form;
    RequestFacts facts;
    std::size_t bom_seen = 0;  ///< bytes of a mark at the beginning; all of them: nothing is left to look for
    bool looking = true;
    bool stale = false;  ///< bytes have come since the facts were taken

    void feed(std::string_view bytes) {
        if (form) {
            form->feed(bytes);
        } else {
            sieve.feed(without_bom(bytes));
        }
    }

    /// Windows tools begin a body with one, and most engines take it. No JSON begins with a part of it.
    std::string_view without_bom(std::string_view bytes) {
        constexpr std::string_view k_bom = "\xef\xbb\xbf";
        while (bom_seen < k_bom.size() && !bytes.empty() && bytes.front() == k_bom[bom_seen]) {
            bytes.remove_prefix(1);
            ++bom_seen;
        }
        if (bytes.empty() || bom_seen == k_bom.size()) return bytes;
        const bool cut = std::exchange(bom_seen, k_bom.size()) > 0;
        return cut ? k_bom.substr(0, 1) : bytes;  // which fails
    }

    void take_facts() {
        if (form) return take_form_facts();
        const JsonValue body = sieve.root();
        if (!body.is(JsonType::object)) return;
        facts = {};
        if (const auto model = word(body["model"])) facts.model.emplace(*model);
        if (const JsonValue stream = body["stream"]; stream.is(JsonType::boolean))
            facts.stream = stream.truthy();
        read_choices(body, facts);
        facts.max_tokens =
            first_count({body["max_completion_tokens"], body["max_output_tokens"], body["max_tokens"],
                         body["max_new_tokens"], body["n_predict"], body["num_predict"],
                         body["parameters"]["max_new_tokens"], body["options"]["num_predict"],
                         body["sampling_params"]["max_new_tokens"]});
    }

    void take_form_facts() {
        facts = {};
        for (const auto& [name, value] : form->fields()) {
            if (name == "model" && !value.empty()) facts.model = value;
            if (name == "stream") facts.stream = value == "true" || value == "True" || value == "1";
        }
    }
};

RequestObserver::RequestObserver(std::string_view content_type)
    : state_(std::make_unique<State>(content_type)) {}
RequestObserver::~RequestObserver() = default;
RequestObserver::RequestObserver(RequestObserver&&) noexcept = default;
RequestObserver& RequestObserver::operator=(RequestObserver&&) noexcept = default;

void RequestObserver::feed(std::string_view bytes) noexcept {
    State& s = *state_;
    if (!s.looking || bytes.empty()) return;
    try {
        s.feed(bytes);
        s.stale = true;
    } catch (const std::bad_alloc&) {
        s.looking = s.stale = false;
        s.sieve.reset();
    }
    if (s.sieve.failed()) {
        s.looking = false;
        s.stale = false;
        s.facts = {};
    }
}

const RequestFacts& RequestObserver::facts() const noexcept {
    State& s = *state_;
    if (!s.stale) return s.facts;
    s.stale = false;
    try {
        s.take_facts();
    } catch (const std::bad_alloc&) {
        s.facts = {};
    }
    return s.facts;
}

}  // namespace noren::metrics
