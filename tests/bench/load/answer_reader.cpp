#include "tests/bench/load/answer_reader.hpp"

#include <algorithm>
#include <charconv>

namespace load {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return out;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

template <typename Number>
bool parse_all(std::string_view text, Number& number, int base) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool AnswerReader::fail(std::string problem) {
    problem_ = std::move(problem);
    state_ = State::broken;
    return false;
}

std::string_view AnswerReader::field(const std::string& name) const {
    const auto found = fields_.find(name);
    return found == fields_.end() ? std::string_view() : std::string_view(found->second);
}

bool AnswerReader::keeps_alive() const {
    return lower(field("connection")) != "close" && state_ == State::whole;
}

bool AnswerReader::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        switch (state_) {
            case State::head:
            case State::chunk_size:
            case State::trailers: {
                const std::size_t lf = bytes.find('\n');
                const std::size_t part = lf == std::string_view::npos ? bytes.size() : lf + 1;
                buffer_.append(bytes.substr(0, part));
                bytes.remove_prefix(part);
                if (buffer_.size() > 65536) return fail("an endless line");
                if (lf == std::string_view::npos) break;
                if (state_ == State::chunk_size) {
                    if (!read_chunk_size()) return false;
                } else if (state_ == State::trailers) {
                    if (buffer_ == "\r\n") finish();
                    buffer_.clear();
                } else if (buffer_.ends_with("\r\n\r\n") && !read_head()) {
                    return false;
                }
                break;
            }
            case State::length:
            case State::chunk_data: {
                const std::size_t part =
                    static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
                body(bytes.substr(0, part));
                bytes.remove_prefix(part);
                left_ -= part;
                if (left_ == 0 && state_ == State::length) finish();
                if (left_ == 0 && state_ == State::chunk_data) state_ = State::chunk_end;
                break;
            }
            case State::chunk_end:
                buffer_.push_back(bytes.front());
                bytes.remove_prefix(1);
                if (buffer_ != std::string_view("\r\n").substr(0, buffer_.size()))
                    return fail("no CRLF behind a chunk");
                if (buffer_.size() == 2) {
                    buffer_.clear();
                    state_ = State::chunk_size;
                }
                break;
            case State::until_close:
                body(bytes);
                bytes = {};
                break;
            case State::whole:
                return fail("bytes behind the answer");
            case State::broken:
                return false;
        }
    }
    return true;
}

bool AnswerReader::closed() {
    if (state_ == State::until_close) finish();
    return state_ == State::whole;
}

bool AnswerReader::read_head() {
    std::string_view head = buffer_;
    if (head.size() < 13 || head.substr(0, 9) != "HTTP/1.1 " || !parse_all(head.substr(9, 3), status_, 10))
        return fail("no HTTP/1.1 status line");
    head.remove_prefix(head.find("\r\n") + 2);
    fields_.clear();
    while (head.size() > 2) {
        const std::string_view line = head.substr(0, head.find("\r\n"));
        head.remove_prefix(line.size() + 2);
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos) return fail("a field line without colon");
        fields_[lower(line.substr(0, colon))] = std::string(trim(line.substr(colon + 1)));
    }
    buffer_.clear();
    if (status_ < 200) return true;  // another head follows
    const std::string type = lower(field("content-type"));
    sse_ = type.starts_with("text/event-stream");
    ndjson_ = type.starts_with("application/x-ndjson");
    if (!field("transfer-encoding").empty()) {
        if (lower(field("transfer-encoding")) != "chunked") return fail("an unknown transfer coding");
        state_ = State::chunk_size;
    } else if (!field("content-length").empty()) {
        if (!parse_all(field("content-length"), left_, 10)) return fail("a bad Content-Length");
        state_ = State::length;
        if (left_ == 0) finish();
    } else if (status_ == 204 || status_ == 304) {
        finish();
    } else {
        state_ = State::until_close;
    }
    return true;
}

bool AnswerReader::read_chunk_size() {
    const std::string_view line =
        std::string_view(buffer_).substr(0, buffer_.size() - std::min<std::size_t>(2, buffer_.size()));
    const std::string_view size = line.substr(0, line.find(';'));
    if (!buffer_.ends_with("\r\n") || !parse_all(size, left_, 16)) return fail("a bad chunk size line");
    buffer_.clear();
    state_ = left_ == 0 ? State::trailers : State::chunk_data;
    return true;
}

void AnswerReader::body(std::string_view bytes) {
    body_bytes_ += bytes.size();
    for (const char c : bytes) {
        body_hash_ ^= static_cast<unsigned char>(c);
        body_hash_ *= 0x100000001b3ULL;
    }
    if (!is_event_stream()) {
        document_.append(bytes);
        return;
    }
    while (!bytes.empty()) {
        const std::size_t lf = bytes.find('\n');
        line_.append(bytes.substr(0, lf));
        if (lf == std::string_view::npos) return;
        bytes.remove_prefix(lf + 1);
        if (!line_.empty() && line_.back() == '\r') line_.pop_back();
        if (sse_) {
            sse_line(line_);
        } else if (!line_.empty()) {
            on_event_(line_);
        }
        line_.clear();
    }
}

void AnswerReader::sse_line(std::string_view line) {
    if (line.empty()) {
        if (has_data_) on_event_(data_);
        data_.clear();
        has_data_ = false;
        return;
    }
    if (!line.starts_with("data:")) return;
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    if (has_data_) data_.push_back('\n');
    data_.append(line);
    has_data_ = true;
}

void AnswerReader::end_of_body() {
    if (ndjson_ && !line_.empty()) on_event_(line_);
    if (sse_ && has_data_) on_event_(data_);
}

void AnswerReader::finish() {
    state_ = State::whole;
    end_of_body();
}

}  // namespace load
