#include "metrics/observe/ndjson_framer.hpp"

namespace noren::metrics {
namespace {

// What clients strip off a line (as Python's str.strip does): more than what JSON calls a blank.
constexpr std::string_view k_controls = "\v\f\x1c\x1d\x1e\x1f";
constexpr std::string_view k_blanks = " \t\r\v\f\x1c\x1d\x1e\x1f";

}  // namespace

void NdjsonFramer::feed(std::string_view bytes, EventSink& sink) {
    while (!bytes.empty()) {
        const std::size_t lf = bytes.find('\n');
        const std::string_view part = bytes.substr(0, lf);
        line_bytes(part, sink);
        position_ += part.size();
        bytes.remove_prefix(part.size());
        if (lf == std::string_view::npos) return;
        ++position_;
        bytes.remove_prefix(1);
        end_line(sink);
    }
}

void NdjsonFramer::line_bytes(std::string_view bytes, EventSink& sink) {
    if (!line_begun_) {
        const std::size_t first = bytes.find_first_not_of(k_blanks);
        if (first == std::string_view::npos) return;
        bytes.remove_prefix(first);
        line_begun_ = true;
    }
    const std::size_t last = bytes.find_last_not_of(k_blanks);
    if (last != std::string_view::npos && !held_.empty()) {
        sink.data(held_);
        held_ = {};
    }
    const std::size_t control =
        bytes.find_first_of(k_controls, last == std::string_view::npos ? 0 : last + 1);
    if (control != std::string_view::npos) {
        held_ = k_controls.substr(k_controls.find(bytes[control]), 1);
        bytes = bytes.substr(0, control);
    }
    if (!bytes.empty()) sink.data(bytes);
}

void NdjsonFramer::end_line(EventSink& sink) {
    sink.event_end(line_start_, position_, false);
    line_start_ = position_;
    line_begun_ = false;
    held_ = {};
}

void NdjsonFramer::finish(EventSink& sink) {
    if (position_ > line_start_) end_line(sink);
}

}  // namespace noren::metrics
