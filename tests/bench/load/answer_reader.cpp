#include "tests/bench/load/answer_reader.hpp"

#include <algorithm>
#include <charconv>

namespace load {
namespace {

constexpr std::size_t k_max_head = 65'536;

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

/// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
    static constexpr std::string_view k_marks = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               k_marks.find(c) != std::string_view::npos;
    });
}

/// One line without its end; false = malformed.
bool add_field(std::string_view line, std::map<std::string, std::string>& fields) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
        line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
        return false;
    const std::string_view value = trim(line.substr(colon + 1));
    const auto [place, fresh] = fields.try_emplace(lower(line.substr(0, colon)), value);
    if (!fresh) place->second.append(", ").append(value);
    return true;
}

std::string_view find(const std::map<std::string, std::string>& fields, const std::string& name) {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string_view() : std::string_view(found->second);
}

bool lists(std::string_view value, std::string_view word) {
    while (!value.empty()) {
        const std::size_t comma = value.find(',');
        if (lower(trim(value.substr(0, comma))) == word) return true;
        value.remove_prefix(comma == std::string_view::npos ? value.size() : comma + 1);
    }
    return false;
}

}  // namespace

bool AnswerReader::fail(std::string problem) {
    problem_ = std::move(problem);
    state_ = State::broken;
    return false;
}

std::string_view AnswerReader::field(const std::string& name) const {
    return find(fields_, name);
}

std::string_view AnswerReader::trailer(const std::string& name) const {
    return find(trailers_, name);
}

bool AnswerReader::keeps_alive() const {
    if (state_ != State::whole || ended_by_close_ || lists(field("connection"), "close")) return false;
    return !old_version_ || lists(field("connection"), "keep-alive");
}

bool AnswerReader::feed(std::string_view bytes) {
    while (!bytes.empty()) {
        bool fine = true;
        switch (state_) {
            case State::head:
            case State::chunk_size:
            case State::trailers:
                fine = line(bytes);
                break;
            case State::length:
            case State::chunk_data:
            case State::until_close:
                take_body(bytes);
                break;
            case State::chunk_end:
                fine = take_chunk_end(bytes.front());
                bytes.remove_prefix(1);
                break;
            case State::whole:
                return fail("bytes behind the end of the answer");
            case State::broken:
                return false;
        }
        if (!fine) return false;
    }
    return true;
}

bool AnswerReader::closed() {
    if (state_ == State::until_close) {
        ended_by_close_ = true;
        finish();
    }
    return state_ == State::whole;
}

bool AnswerReader::line(std::string_view& bytes) {
    const std::size_t lf = bytes.find('\n');
    const std::size_t part = lf == std::string_view::npos ? bytes.size() : lf + 1;
    if (buffer_.size() + part > k_max_head) return fail("a head or a line of it over 64 KiB");
    buffer_.append(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (lf == std::string_view::npos) return true;
    if (!buffer_.ends_with("\r\n")) return fail("a line that ends in a bare LF");
    if (state_ == State::chunk_size) return read_chunk_size();
    if (state_ == State::trailers) return read_trailer();
    return !buffer_.ends_with("\r\n\r\n") || read_head();
}

bool AnswerReader::read_head() {
    const std::string_view status_line = std::string_view(buffer_).substr(0, buffer_.find("\r\n"));
    old_version_ = status_line.starts_with("HTTP/1.0 ");
    const bool fine = (old_version_ || status_line.starts_with("HTTP/1.1 ")) && status_line.size() >= 13 &&
                      parse_all(status_line.substr(9, 3), status_, 10) && status_ >= 100 &&
                      status_line[12] == ' ';
    if (!fine) return fail("no HTTP/1.1 status line");
    fields_.clear();
    std::string_view lines = std::string_view(buffer_).substr(status_line.size() + 2);
    while (lines.size() > 2) {
        const std::string_view line = lines.substr(0, lines.find("\r\n"));
        lines.remove_prefix(line.size() + 2);
        if (!add_field(line, fields_)) return fail("a malformed field line");
    }
    buffer_.clear();
    if (status_ == 101) return fail("101 though no upgrade was asked for");
    if (status_ < 200) return true;  // another head follows
    head_known_ = true;
    return read_framing();
}

bool AnswerReader::read_framing() {
    const bool coded = fields_.contains("transfer-encoding"), sized = fields_.contains("content-length");
    const bool bodiless = status_ == 204 || status_ == 304;
    if (coded && sized) return fail("both Transfer-Encoding and Content-Length");
    if (coded && (lower(field("transfer-encoding")) != "chunked" || old_version_ || status_ == 204))
        return fail("a Transfer-Encoding that may not be");
    // from_chars takes no comma: two lengths, even equal ones, are refused here.
    if (sized && !parse_all(field("content-length"), left_, 10)) return fail("a bad Content-Length");
    const std::string type = lower(trim(field("content-type").substr(0, field("content-type").find(';'))));
    if (type == "text/event-stream") events_.emplace(EventFramer::Kind::sse, on_event_);
    if (type == "application/x-ndjson" || type == "application/ndjson" || type == "application/jsonl" ||
        type == "application/x-jsonlines")
        events_.emplace(EventFramer::Kind::ndjson, on_event_);
    if (bodiless || (sized && left_ == 0)) {
        finish();
    } else {
        state_ = coded ? State::chunk_size : sized ? State::length : State::until_close;
    }
    return true;
}

bool AnswerReader::read_chunk_size() {
    const std::string_view text = std::string_view(buffer_).substr(0, buffer_.size() - 2);
    if (!parse_all(text.substr(0, text.find(';')), left_, 16)) return fail("a bad chunk size line");
    buffer_.clear();
    state_ = left_ == 0 ? State::trailers : State::chunk_data;
    return true;
}

bool AnswerReader::read_trailer() {
    if (buffer_ == "\r\n") {
        finish();
    } else if (!add_field(std::string_view(buffer_).substr(0, buffer_.size() - 2), trailers_)) {
        return fail("a malformed trailer");
    }
    buffer_.clear();
    return true;
}

void AnswerReader::take_body(std::string_view& bytes) {
    const std::uint64_t most = state_ == State::until_close ? bytes.size() : left_;
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(most, bytes.size()));
    body(bytes.substr(0, part));
    bytes.remove_prefix(part);
    if (state_ == State::until_close) return;
    left_ -= part;
    if (left_ > 0) return;
    if (state_ == State::length) {
        finish();
    } else {
        state_ = State::chunk_end;
    }
}

bool AnswerReader::take_chunk_end(char next) {
    buffer_.push_back(next);
    if (buffer_ != std::string_view("\r\n").substr(0, buffer_.size())) return fail("no CRLF behind a chunk");
    if (buffer_.size() == 2) {
        buffer_.clear();
        state_ = State::chunk_size;
    }
    return true;
}

void AnswerReader::body(std::string_view bytes) {
    body_bytes_ += bytes.size();
    for (const char c : bytes) {
        body_hash_ ^= static_cast<unsigned char>(c);
        body_hash_ *= 0x100000001b3ULL;
    }
    if (events_) {
        events_->feed(bytes);
    } else {
        document_.append(bytes);
    }
}

void AnswerReader::finish() {
    state_ = State::whole;
    if (events_) events_->finish();
}

}  // namespace load
