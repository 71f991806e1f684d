#include "metrics/observe/sse_framer.hpp"

#include <algorithm>
#include <cstring>

namespace noren::metrics {
namespace {

constexpr std::string_view k_bom = "\xef\xbb\xbf";

/// Index of the first CR or LF, or the size.
std::size_t line_end(std::string_view bytes) {
    const void* lf = std::memchr(bytes.data(), '\n', bytes.size());
    const std::size_t until_lf =
        lf ? static_cast<std::size_t>(static_cast<const char*>(lf) - bytes.data()) : bytes.size();
    const void* cr = std::memchr(bytes.data(), '\r', until_lf);
    return cr ? static_cast<std::size_t>(static_cast<const char*>(cr) - bytes.data()) : until_lf;
}

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
        } else if (after_cr_ && bytes.front() == '\n') {
            used = 1;
            after_cr_ = false;
            if (ended_at_cr_) {
                ++event_start_;
                sink.event_end_moved();
            }
            if (line_empty_ && !has_data_ && event_start_ == position_) event_start_ = position_ + 1;
        } else if (bytes.front() == '\n' || bytes.front() == '\r') {
            after_cr_ = bytes.front() == '\r';
            ++position_;
            end_line(sink);
            bytes.remove_prefix(1);
            continue;
        } else {
            after_cr_ = false;
            const std::string_view run = bytes.substr(0, line_end(bytes));
            used = run.size();
            line_empty_ = false;
            if (part_ == Part::name) {
                const std::size_t colon = run.find(':');
                name_bytes(run.substr(0, colon));
                if (colon != std::string_view::npos) {
                    used = colon + 1;
                    begin_value(sink);
                }
            } else {
                value_bytes(run, sink);
            }
        }
        position_ += used;
        bytes.remove_prefix(used);
    }
}

void SseFramer::name_bytes(std::string_view bytes) {
    if (!bytes.empty()) line_empty_ = false;
    for (const char c : bytes) {
        if (name_size_ < name_.size()) name_[name_size_] = c;
        ++name_size_;
    }
}

SseFramer::Field SseFramer::field() const {
    if (name_size_ > name_.size()) return Field::other;
    const std::string_view name(name_.data(), name_size_);
    return name == "data" ? Field::data : name == "event" ? Field::event : Field::other;
}

void SseFramer::begin_value(EventSink& sink) {
    part_ = Part::space;
    field_ = field();
    if (field_ == Field::event) event_name_size_ = 0;
    if (field_ != Field::data) return;
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
        for (const char c : bytes) {
            if (event_name_size_ < event_name_.size()) event_name_[event_name_size_] = c;
            ++event_name_size_;
        }
    }
}

/// position_ is behind the line's end.
void SseFramer::end_line(EventSink& sink) {
    ended_at_cr_ = false;
    // A line without a colon is a field name alone, with an empty value.
    if (part_ == Part::name && !line_empty_) begin_value(sink);
    if (line_empty_) {
        if (has_data_) {
            const bool named_error =
                std::string_view(event_name_.data(), std::min(event_name_size_, event_name_.size())) ==
                "error";
            sink.event_end(event_start_, position_, named_error);
        }
        ended_at_cr_ = has_data_ && after_cr_;
        event_start_ = position_;
        event_name_size_ = 0;
        has_data_ = false;
    }
    part_ = Part::name;
    name_size_ = 0;
    line_empty_ = true;
}

void SseFramer::finish(EventSink& sink) {
    if (part_ == Part::bom && bom_seen_ > 0) name_bytes(k_bom.substr(0, bom_seen_));
    if (!line_empty_) {
        if (part_ == Part::name) begin_value(sink);
        part_ = Part::name;
    }
    if (!has_data_) return;
    const bool named_error =
        std::string_view(event_name_.data(), std::min(event_name_size_, event_name_.size())) == "error";
    sink.event_end(event_start_, position_, named_error);
    has_data_ = false;
}

}  // namespace noren::metrics
