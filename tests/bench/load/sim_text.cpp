#include "tests/bench/load/sim_text.hpp"

#include <algorithm>
#include <charconv>

#include "tests/sim/token_text.hpp"

namespace load {
namespace {

/// What a noren-sim cuts max_tokens to, if it is not told otherwise.
constexpr std::uint32_t k_sim_max_output = 4096;

std::optional<std::uint32_t> number_of(const std::vector<std::string>& lines, std::string_view lower_name) {
    const auto same = [](char wanted, char found) {
        return wanted == (found >= 'A' && found <= 'Z' ? found + 32 : found);
    };
    for (const std::string& line : lines) {
        const std::string_view name = std::string_view(line).substr(0, line.find(':'));
        if (!std::equal(lower_name.begin(), lower_name.end(), name.begin(), name.end(), same)) continue;
        const std::size_t from = line.find_first_not_of(' ', name.size() + 1);
        std::uint32_t number = 0;
        if (from != std::string::npos &&
            std::from_chars(line.data() + from, line.data() + line.size(), number).ec == std::errc())
            return number;
    }
    return std::nullopt;
}

}  // namespace

std::string TextCheck::words() const {
    if (same()) return {};
    const char* what = lost > 0 ? " lost" : extra > 0 ? " too many" : " altered";
    const std::uint64_t bytes = lost + extra + altered;
    return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + what + " at byte " +
           std::to_string(at) + " of the text";
}

TextCheck compare(std::string_view expected, std::string_view got) {
    TextCheck check;
    if (expected == got) return check;
    const auto [e, g] = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end());
    check.at = static_cast<std::uint64_t>(e - expected.begin());
    const std::string_view rest_expected = expected.substr(check.at), rest_got = got.substr(check.at);
    if (rest_got.size() < rest_expected.size() && rest_expected.ends_with(rest_got)) {
        check.lost = rest_expected.size() - rest_got.size();
    } else if (rest_got.size() > rest_expected.size() && rest_got.ends_with(rest_expected)) {
        check.extra = rest_got.size() - rest_expected.size();
    } else {
        const std::size_t common = std::min(rest_expected.size(), rest_got.size());
        check.altered = std::max(rest_expected.size(), rest_got.size()) - common;
        for (std::size_t i = 0; i < common; ++i)
            check.altered += rest_expected[i] != rest_got[i];
    }
    return check;
}

SimText::SimText(Api api, const std::vector<std::string>& header_lines)
    : tokens_(number_of(header_lines, "x-sim-tokens")),
      // TGI sends one event per token whatever a step produced.
      per_event_(api == Api::tgi ? 1 : number_of(header_lines, "x-sim-tokens-per-event").value_or(1)),
      bytes_(number_of(header_lines, "x-sim-bytes").value_or(0)) {}

std::string SimText::text_of(std::string_view id, std::uint32_t choice, std::uint32_t tokens) const {
    return sim::whole_text(sim::stream_key(id), choice, tokens, per_event_, bytes_);
}

TextCheck SimText::check(std::string_view id, const std::map<std::uint32_t, std::string>& texts,
                         std::optional<std::uint64_t> reported, std::optional<std::uint32_t> asked) const {
    // The engine cuts what is asked for at its own bound, which we only know the default of.
    if (asked && *asked > k_sim_max_output) asked.reset();
    std::optional<std::uint32_t> tokens = tokens_ ? tokens_ : asked;
    const std::size_t choices = std::max<std::size_t>(1, texts.size());
    if (reported) tokens = static_cast<std::uint32_t>(*reported / choices);
    TextCheck worst;
    for (const auto& [choice, text] : texts) {
        std::string expected = text_of(id, choice, tokens.value_or(1));
        // Unknown length: as many whole events as the text could hold.
        for (std::uint32_t n = 1; !tokens && expected.size() < text.size(); ++n)
            expected = text_of(id, choice, n * per_event_);
        const TextCheck check = compare(expected, text);
        if (check.altered + check.lost + check.extra > worst.altered + worst.lost + worst.extra)
            worst = check;
    }
    if (texts.empty() && tokens.value_or(0) > 0) worst.lost = text_of(id, 0, *tokens).size();
    return worst;
}

}  // namespace load
