#include "tests/bench/load/event_framer.hpp"

namespace load {
namespace {

std::string_view trim(std::string_view text) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!text.empty() && blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && blank(text.back()))
        text.remove_suffix(1);
    return text;
}

}  // namespace

void EventFramer::feed(std::string_view bytes) {
    // A CR ends an SSE line by itself; the LF of a CRLF is then already spoken for.
    const std::string_view ends = kind_ == Kind::sse ? "\r\n" : "\n";
    while (!bytes.empty()) {
        if (after_cr_ && bytes.front() == '\n') bytes.remove_prefix(1);
        after_cr_ = false;
        const std::size_t end = bytes.find_first_of(ends);
        line_.append(bytes.substr(0, end));
        if (end == std::string_view::npos) return;
        after_cr_ = bytes[end] == '\r';
        bytes.remove_prefix(end + 1);
        line();
    }
}

void EventFramer::finish() {
    if (!line_.empty()) line();
    dispatch();
}

void EventFramer::line() {
    if (kind_ == Kind::ndjson) {
        const std::string_view document = trim(line_);
        if (!document.empty()) on_event_({{}, document});
    } else {
        std::string_view text = line_;
        if (first_line_ && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
        sse_line(text);
    }
    first_line_ = false;
    line_.clear();
}

void EventFramer::sse_line(std::string_view text) {
    if (text.empty()) return dispatch();
    const std::size_t colon = text.find(':');
    const std::string_view field = text.substr(0, colon);
    std::string_view value = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (field == "event") name_ = value;
    if (field != "data") return;  // comments, ids, retry times
    if (has_data_) data_.push_back('\n');
    data_.append(value);
    has_data_ = true;
}

void EventFramer::dispatch() {
    if (const std::string_view data = trim(data_); !data.empty()) on_event_({name_, data});
    data_.clear();
    name_.clear();
    has_data_ = false;
}

}  // namespace load
