#include "metrics/observe/sse_framer.hpp"

#include <algorithm>
#include <utility>

#include "metrics/observe/byte_scan.hpp"

namespace noren::metrics {
namespace {

constexpr std::string_view k_bom = "\xef\xbb\xbf";
constexpr std::string_view k_data = "data:", k_event = "event:";

}  // namespace

/// How many of the bytes belong to the mark. Bytes that only began like one are an ordinary field name.
std::size_t SseFramer::skip_bom(std::string_view bytes) {
    std::size_t used = 0;
    while (used < bytes.size() && bom_seen_ < k_bom.size() && bytes[used] == k_bom[bom_seen_]) {
        ++used;
        ++bom_seen_;
    }
    if (bom_seen_ < k_bom.size() && used == bytes.size()) return used;
    part_ = Part::name;
    if (bom_seen_ == k_bom.size()) {
        event_start_ = k_bom.size();
    } else {
        name_bytes(k_bom.substr(0, bom_seen_));
    }
    return used;
}

void SseFramer::feed(std::string_view bytes, EventSink& sink) {
    while (!bytes.empty()) {
        std::size_t used = 0;
        if (part_ == Part::bom) {
            used = skip_bom(bytes);
        } else if (bytes.front() == '\n' || bytes.front() == '\r') {
            ++position_;
            end_line(bytes.front(), sink);
            bytes.remove_prefix(1);
            continue;
        } else if (part_ == Part::name) {
            used = scan_name(bytes, sink);
        } else {
            const char* const end = find_line_end(bytes.data(), bytes.data() + bytes.size());
            used = static_cast<std::size_t>(end - bytes.data());
            value_bytes(bytes.substr(0, used), sink);
        }
        position_ += used;
        bytes.remove_prefix(used);
    }
}

/// To behind the colon, or to the end of the line or the bytes.
std::size_t SseFramer::scan_name(std::string_view bytes, EventSink& sink) {
    after_cr_ = false;
    if (std::exchange(line_empty_, false)) {
        // What nearly all lines of a stream begin with; the last is a comment.
        if (bytes.starts_with(k_data)) return begin_value(Field::data, sink), k_data.size();
        if (bytes.starts_with(k_event)) return begin_value(Field::event, sink), k_event.size();
        if (bytes.front() == ':') return begin_value(Field::other, sink), 1;
    }
    const auto ends_name = [](char c) { return c == ':' || c == '\n' || c == '\r'; };
    const auto size =
        static_cast<std::size_t>(std::find_if(bytes.begin(), bytes.end(), ends_name) - bytes.begin());
    name_.append(bytes.substr(0, size));
    if (size == bytes.size() || bytes[size] != ':') return size;
    begin_value(take_field(), sink);
    return size + 1;
}

void SseFramer::name_bytes(std::string_view bytes) {
    if (!bytes.empty()) line_empty_ = false;
    name_.append(bytes);
}

/// What the name that has come means; forgets the name.
SseFramer::Field SseFramer::take_field() {
    const Field field = name_.is("data") ? Field::data : name_.is("event") ? Field::event : Field::other;
    name_.clear();
    return field;
}

void SseFramer::begin_value(Field field, EventSink& sink) {
    part_ = Part::space;
    field_ = field;
    if (field == Field::event) event_name_.clear();
    if (field != Field::data) return;
    if (has_data_) sink.data("\n");
    has_data_ = true;
}

void SseFramer::value_bytes(std::string_view bytes, EventSink& sink) {
    if (part_ == Part::space && bytes.front() == ' ') bytes.remove_prefix(1);
    part_ = Part::value;
    if (bytes.empty()) return;
    if (field_ == Field::data) {
        sink.data(bytes);
    } else if (field_ == Field::event) {
        event_name_.append(bytes);
    }
}

/// By an LF or CR, which position_ is behind.
void SseFramer::end_line(char c, EventSink& sink) {
    if (c == '\n' && after_cr_) return end_crlf(sink);
    after_cr_ = c == '\r';
    ended_at_cr_ = false;
    // A line without a colon is a field name alone, with an empty value.
    if (part_ == Part::name && !line_empty_) begin_value(take_field(), sink);
    if (line_empty_) {
        ended_at_cr_ = has_data_ && after_cr_;
        end_event(sink);
        event_start_ = position_;
        event_name_.clear();
    }
    part_ = Part::name;
    line_empty_ = true;
}

/// The line has ended at its CR; only offsets change.
void SseFramer::end_crlf(EventSink& sink) {
    after_cr_ = false;
    if (ended_at_cr_) sink.event_end_moved();
    if (!has_data_ && event_start_ == position_ - 1) event_start_ = position_;
}

void SseFramer::end_event(EventSink& sink) {
    if (!has_data_) return;
    sink.event_end(event_start_, position_, event_name_.is("error"));
    has_data_ = false;
}

void SseFramer::finish(EventSink& sink) {
    if (part_ == Part::bom && bom_seen_ > 0) name_bytes(k_bom.substr(0, bom_seen_));
    if (!line_empty_) {
        if (part_ == Part::name) begin_value(take_field(), sink);
        part_ = Part::name;
    }
    end_event(sink);
}

}  // namespace noren::metrics
