#include "tests/bench/load/verdict.hpp"

namespace load {

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
    if (reader.status() < 200 || reader.status() >= 300) return verdict;
    if (reading.unparsable)
        return say("unparsable", reader.is_event_stream() ? "an event is no JSON" : "the answer is no JSON");
    if (reading.error) return say("engine_error", "the API's own error, in an answer of status 200");
    // Triton has no end marker of its own.
    if (reader.is_event_stream() && !reading.end && api != Api::triton)
        return say("no_end_marker", "the stream ended without the API's own end");
    if (!expected.text || reader.field("server") != "noren-sim") return verdict;
    verdict.checked = true;
    verdict.text = expected.text->check(expected.id, reading.texts, reading.reported, expected.tokens);
    if (!verdict.text.same()) return say("altered", verdict.text.words());
    return verdict;
}

}  // namespace load
