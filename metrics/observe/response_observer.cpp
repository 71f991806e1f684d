#include "metrics/observe/response_observer.hpp"

#include <new>
#include <utility>

#include "metrics/observe/ascii.hpp"
#include "metrics/observe/body_format.hpp"
#include "metrics/observe/borrowed_sieve.hpp"
#include "metrics/observe/done_marker.hpp"
#include "metrics/observe/event_pattern.hpp"
#include "metrics/observe/event_sink.hpp"
#include "metrics/observe/ndjson_framer.hpp"
#include "metrics/observe/sse_framer.hpp"
#include "metrics/observe/token_rules.hpp"
#include "metrics/prefetch.hpp"

namespace noren::metrics {

struct ResponseObserver::State final : EventSink {
    State(int status, std::string_view content_type, std::string_view content_encoding);

    void feed(std::string_view bytes);
    void end_of_body();
    void degrade();

    void data(std::string_view piece) override;
    void event_end(std::uint64_t start, std::uint64_t end, bool named_error) override;
    void event_end_moved() override;

    void look_into(std::string_view bytes);
    void read_data(std::string_view piece);
    void read_recognised();
    void read_event(std::uint64_t start, std::uint64_t end);
    void read(const JsonValue& object, const UsageReport& report);
    void read_list(const JsonValue& list);
    void count_token_event(std::uint64_t start, std::uint64_t end);
    UsageReport reported(std::int64_t of_each_prompt) const;
    Observation settled(std::int64_t of_each_prompt) const;

    BodyFormat format;
    Observation seen;
    UsageReport usage;                    ///< of the whole answer
    std::unique_ptr<SequenceSum> listed;  ///< of a list of whole answers
    std::optional<std::string> first_choice_reason, last_reason;
    BorrowedSieve sieve;
    SseFramer sse;
    NdjsonFramer ndjson;
    DoneMarker done_marker;
    StreamMemory memory;
    EventPattern pattern;
    bool event_begun = false;
    std::string_view recognised;   ///< all data of this event so far, which fits the pattern
    std::string_view whole_event;  ///< likewise, of one that was read
    bool last_was_token = false;
    bool finished = false;
    std::vector<std::uint64_t>* offsets = nullptr;
};

ResponseObserver::State::State(int status, std::string_view content_type, std::string_view content_encoding)
    : format(format_of(content_type)) {
    seen.streaming = format == BodyFormat::sse || format == BodyFormat::ndjson;
    seen.error = status >= 400;
    seen.opaque = !content_encoding.empty() && !same_word(content_encoding, "identity");
    if (seen.opaque) format = BodyFormat::opaque;
}

void ResponseObserver::State::feed(std::string_view bytes) {
    look_into(bytes);
    // What the next call does not have any more.
    read_recognised();
    whole_event = {};
    if (sieve) sieve->hold();
}

void ResponseObserver::State::look_into(std::string_view bytes) {
    switch (format) {
        case BodyFormat::sse:
            return sse.feed(bytes, *this);
        case BodyFormat::ndjson:
            return ndjson.feed(bytes, *this);
        case BodyFormat::json:
            return sieve->feed_borrowed(bytes);
        case BodyFormat::opaque:
            return;
    }
}

void ResponseObserver::State::end_of_body() {
    if (format == BodyFormat::sse) sse.finish(*this);
    if (format == BodyFormat::ndjson) ndjson.finish(*this);
    if (format != BodyFormat::json) return;
    seen.complete = sieve->finish();
    // A list too long to keep may be the scores of as many documents.
    const bool is_list = sieve->root().is(JsonType::array);
    if ((!seen.complete && !sieve->blank()) || (sieve->overflowed() && !is_list)) ++seen.unparsed_events;
    if (!seen.complete) return;
    const JsonValue root = sieve->root();
    if (!root.is(JsonType::array)) return read(root, usage_of(root));
    read_list(root);
}

/// An answer of its own for each prompt, or for each sequence. The first tells the model and how it ended.
void ResponseObserver::State::read_list(const JsonValue& list) {
    read(list.first(), {});
    for (JsonValue answer = list.first(); answer; answer = answer.next()) {
        const UsageReport report = usage_of(answer);
        if (report == UsageReport{}) continue;
        if (!listed) listed = std::make_unique<SequenceSum>();
        listed->add(report);
    }
    if (sieve->overflowed() && listed) ++memory.missed;
}

/// By the engine, as it was said last. The sum of some of the sequences is not that of all: then nothing.
UsageReport ResponseObserver::State::reported(std::int64_t of_each_prompt) const {
    if (memory.missed > 0) return {};
    SequenceSum sequences = listed ? *listed : SequenceSum();
    for (const auto& [choice, report] : memory.reported)
        sequences.add(report);
    if (!memory.reported.empty()) sequences.last = memory.last;
    UsageReport told = sequences.of_all(of_each_prompt), whole = usage;
    if (memory.sequence_last) std::swap(told, whole);
    told.keep_last(whole);
    return told;
}

/// Out of memory: bytes go on, the rest of this answer is not looked at.
void ResponseObserver::State::degrade() {
    format = BodyFormat::opaque;
    recognised = {};
    sieve.give_back();
    ++seen.unparsed_events;
}

void ResponseObserver::State::data(std::string_view piece) {
    const bool is_first = !std::exchange(event_begun, true);
    if (is_first && pattern.matches(piece)) {
        recognised = piece;
        return;
    }
    read_recognised();
    whole_event = is_first ? piece : std::string_view();
    read_data(piece);
}

void ResponseObserver::State::read_data(std::string_view piece) {
    sieve->feed_borrowed(piece);
    if (format == BodyFormat::sse) done_marker.feed(piece);
}

/// The event goes on where it had seemed whole, or its end is still to come: it was not recognised after all.
void ResponseObserver::State::read_recognised() {
    if (!recognised.empty()) read_data(std::exchange(recognised, {}));
}

void ResponseObserver::State::event_end(std::uint64_t start, std::uint64_t end, bool named_error) {
    last_was_token = false;
    event_begun = false;
    if (!std::exchange(recognised, {}).empty()) {
        seen.error = seen.error || named_error;
        return count_token_event(start, end);
    }
    if (format == BodyFormat::sse && done_marker.seen()) {
        seen.complete = true;
    } else {
        seen.error = seen.error || named_error;
        read_event(start, end);
    }
    done_marker.reset();
    sieve.give_back();
}

void ResponseObserver::State::read_event(std::uint64_t start, std::uint64_t end) {
    const bool understood = sieve->finish() && sieve->root().is(JsonType::object);
    if ((!understood && !sieve->blank()) || sieve->overflowed()) ++seen.unparsed_events;
    if (!understood) return;
    const JsonValue event = sieve->root();
    const bool token = has_token(event, memory);
    if (token) count_token_event(start, end);
    read(event, whole_usage_of(event, memory));
    seen.complete = seen.complete || is_end(event);
    if (token && pattern.wants_another() && !whole_event.empty() && is_only_token(event))
        pattern.learn(whole_event, sieve->loose());
}

void ResponseObserver::State::event_end_moved() {
    if (!last_was_token) return;
    if (seen.token_events == 1) ++*seen.first_token_event_offset;
    if (offsets && !offsets->empty()) ++offsets->back();
}

void ResponseObserver::State::count_token_event(std::uint64_t start, std::uint64_t end) {
    last_was_token = true;
    if (++seen.token_events == 1) {
        seen.first_token_event_start = start;
        seen.first_token_event_offset = end;
    }
    if (offsets) offsets->push_back(end);
}

void ResponseObserver::State::read(const JsonValue& object, const UsageReport& report) {
    if (!object.is(JsonType::object)) return;
    usage.keep_last(report);
    if (!seen.model)
        if (const auto model = model_of(object)) seen.model.emplace(*model);
    for_each_finish_reason(object, [&](std::int64_t choice, std::string_view reason) {
        if (choice == 0) first_choice_reason.emplace(reason);
        last_reason.emplace(reason);
    });
    seen.error = seen.error || is_error(object);
}

/// A count that the engine reports is the truth, unless it is plainly a provisional one: lower than the
/// events seen, in an answer that did not come to its end.
Observation ResponseObserver::State::settled(std::int64_t of_each_prompt) const {
    Observation result = seen;
    result.unparsed_events += memory.missed;
    const UsageReport told = reported(of_each_prompt);
    const auto events = static_cast<std::int64_t>(seen.token_events);
    const bool credible =
        told.output && (!seen.streaming || *told.output >= events || (seen.complete && *told.output > 0));
    if (credible) {
        result.output_tokens = told.output;
        result.output_tokens_source = TokenSource::usage;
    } else if (events > 0) {
        result.output_tokens = events;
        result.output_tokens_source = TokenSource::events;
    }
    result.input_tokens = told.input;
    result.cached_tokens = told.cached;
    result.reasoning_tokens = told.reasoning;
    result.finish_reason = first_choice_reason ? first_choice_reason : last_reason;
    return result;
}

ResponseObserver::ResponseObserver(int status, std::string_view content_type,
                                   std::string_view content_encoding)
    : state_(std::make_unique<State>(status, content_type, content_encoding)) {}
ResponseObserver::~ResponseObserver() = default;
ResponseObserver::ResponseObserver(ResponseObserver&&) noexcept = default;
ResponseObserver& ResponseObserver::operator=(ResponseObserver&&) noexcept = default;

void ResponseObserver::prefetch() const noexcept {
    metrics::prefetch(state_.get(), sizeof(State));
    state_->pattern.prefetch();
}

std::uint32_t ResponseObserver::feed(std::string_view bytes) noexcept {
    State& s = *state_;
    const std::uint64_t before = s.seen.token_events;
    try {
        s.feed(bytes);
    } catch (const std::bad_alloc&) {
        s.degrade();
    }
    return static_cast<std::uint32_t>(s.seen.token_events - before);
}

std::uint32_t ResponseObserver::finish() noexcept {
    State& s = *state_;
    const std::uint64_t before = s.seen.token_events;
    if (std::exchange(s.finished, true)) return 0;
    try {
        s.end_of_body();
    } catch (const std::bad_alloc&) {
        s.degrade();
    }
    return static_cast<std::uint32_t>(s.seen.token_events - before);
}

Observation ResponseObserver::observation(std::int64_t of_each_prompt) const {
    return state_->settled(of_each_prompt);
}
std::uint64_t ResponseObserver::token_events() const noexcept {
    return state_->seen.token_events;
}
void ResponseObserver::record_offsets(std::vector<std::uint64_t>* offsets) noexcept {
    state_->offsets = offsets;
}

}  // namespace noren::metrics
