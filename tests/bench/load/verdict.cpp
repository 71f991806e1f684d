#include "tests/bench/load/verdict.hpp"

#include <array>
#include <charconv>
#include <cstdio>

#include "tests/sim/token_text.hpp"

namespace load {
namespace {

std::string hex(std::uint64_t value) {
    std::array<char, 17> text{};
    std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
    return text.data();
}

/// The hash that the engine took of the body it sent; empty if it told none.
std::string_view digest_of(const AnswerReader& reader) {
    const std::string_view before = reader.field(k_digest);
    return before.empty() ? reader.trailer(k_digest) : before;
}

}  // namespace

void Reading::take(Api api, const Event& event) {
    const Told told = read_event(api, event);
    unparsable = unparsable || !told.valid;
    end = end || told.end;
    error = error || told.error;
    if (told.output_tokens) reported = told.output_tokens;
    fresh += told.generated;
    for (const Told::Piece& piece : told.pieces)
        texts[piece.choice] += piece.text;
}

std::uint64_t Reading::take_stamped(const Event& event) {
    if (event.data == "[DONE]") end = true;
    const std::size_t place = event.data.find('@');
    if (place == std::string_view::npos || event.data.size() - place < sim::k_unstamped.size()) return 0;
    const char* const digits = event.data.data() + place + 1;
    std::uint64_t sent = 0;
    if (std::from_chars(digits, digits + sim::k_stamp_digits, sent).ptr != digits + sim::k_stamp_digits)
        return 0;
    ++fresh;
    return sent;
}

Verdict judge(Api api, const AnswerReader& reader, const Reading& reading, const Expected& expected) {
    Verdict verdict;
    const auto say = [&](const char* error, std::string detail) {
        verdict.error = error;
        verdict.detail = std::move(detail);
        return verdict;
    };
    const std::string_view id = reader.field("x-request-id");
    // An engine may give ids of its own, but none of ours that belongs to another request.
    if (id.starts_with("load-") && id != expected.id)
        return say("wrong_answer", "x-request-id: " + std::string(id));
    const std::string_view digest = expected.text ? digest_of(reader) : std::string_view();
    const bool body_right = digest.empty() || digest == hex(reader.body_hash());
    verdict.body_checked = !digest.empty();
    const auto end = [&] {
        return body_right ? verdict
                          : say("altered", "the body is not the one that was sent: its hash differs");
    };
    if (reader.status() < 200 || reader.status() >= 300) return end();
    if (expected.hash_alone) return end();
    // What can be told in more detail comes first.
    if (reading.unparsable)
        return say("unparsable", reader.is_event_stream() ? "an event is no JSON" : "the answer is no JSON");
    if (reading.error) return say("engine_error", "the API's own error, in an answer of status 200");
    // Triton has no end marker of its own.
    if (reader.is_event_stream() && !reading.end && api != Api::triton)
        return say("no_end_marker", "the stream ended without the API's own end");
    if (!expected.text || reader.field("server") != "noren-sim") return end();
    verdict.checked = true;
    verdict.text = expected.text->check(expected.id, reading.texts, reading.reported, expected.tokens);
    return verdict.text.same() ? end() : say("altered", verdict.text.words());
}

}  // namespace load
