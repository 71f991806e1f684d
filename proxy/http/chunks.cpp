#include "proxy/http/chunks.hpp"

#include <algorithm>
#include <array>

#include "proxy/http/hex.hpp"

namespace noren::proxy::http {
namespace {

// Extensions are legal, unused, and a known way to make a server read megabytes for a byte of data.
constexpr std::size_t k_max_line = 256;
constexpr std::size_t k_max_trailers = 8 * 1024;

struct SizeLine {
    std::uint64_t size = 0;
    bool valid = false;
    bool plain = false;
};

/// What is left to read of a chunk extension. A take is false if something else comes next.
class ExtensionReader {
  public:
    explicit ExtensionReader(std::string_view text) : text_(text) {}

    bool at_end() const { return text_.empty(); }
    bool is_at(char c) const { return text_.starts_with(c); }
    void skip_blanks() { text_.remove_prefix(std::min(text_.size(), text_.find_first_not_of(" \t"))); }
    bool take(char c) {
        if (!is_at(c)) return false;
        text_.remove_prefix(1);
        return true;
    }
    bool take_token() {
        std::size_t size = 0;
        while (size < text_.size() && is_token(text_.substr(size, 1)))
            ++size;
        text_.remove_prefix(size);
        return size != 0;
    }
    bool take_quoted_string() {
        if (!take('"')) return false;
        for (bool escaped = false; !text_.empty(); text_.remove_prefix(1)) {
            const auto byte = static_cast<unsigned char>(text_.front());
            if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return false;
            if (!escaped && byte == '"') return take('"');
            escaped = !escaped && byte == '\\';
        }
        return false;
    }

  private:
    std::string_view text_;
};

/// chunk-ext of RFC 9112 7.1.1: *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ).
bool is_extension(std::string_view text) {
    ExtensionReader reader(text);
    while (!reader.at_end()) {
        reader.skip_blanks();
        if (!reader.take(';')) return false;
        reader.skip_blanks();
        if (!reader.take_token()) return false;
        ExtensionReader behind_name = reader;
        behind_name.skip_blanks();
        if (!behind_name.take('=')) continue;  // the blanks, if any, belong to the next ';'
        reader = behind_name;
        reader.skip_blanks();
        const bool taken = reader.is_at('"') ? reader.take_quoted_string() : reader.take_token();
        if (!taken) return false;
    }
    return true;
}

/// A field that came as "a:b" goes on as "a: b": who reads it with our own limit must be able to.
std::size_t size_when_written(const Fields& trailers) {
    std::size_t size = 2;
    for (const Field& field : trailers.all())
        size += field.name.size() + field.value.size() + 4;
    return size;
}

/// line: without its CRLF.
SizeLine parse_size_line(std::string_view line) {
    SizeLine result;
    std::size_t digits = 0;
    for (; digits < line.size(); ++digits) {
        const int digit = hex_digit(line[digits]);
        if (digit < 0) break;
        if (result.size >> 59 != 0) return result;  // keeps sums of a size and a few bytes below 2^64
        result.size = result.size << 4 | static_cast<std::uint64_t>(digit);
    }
    // Leading zeros without end are no size either.
    if (digits == 0 || digits > 16) return result;
    const std::string_view rest = line.substr(digits);
    result.plain = rest.empty();
    // Blanks alone behind the size are not in the grammar: BWS belongs to an extension.
    result.valid = is_extension(rest);
    return result;
}

}  // namespace

bool is_forbidden_trailer(std::string_view name) {
    // clang-format off
    constexpr std::array<std::string_view, 33> k_forbidden = {
        // framing and the connection
        "transfer-encoding", "content-length", "connection", "keep-alive", "proxy-connection", "te", "trailer",
        "upgrade", "http2-settings",
        // routing and what a request asks for
        "host", "via", "forwarded", "expect", "max-forwards", "range", "x-request-id",
        // authentication
        "authorization", "cookie", "set-cookie", "www-authenticate", "proxy-authenticate",
        "proxy-authorization",
        // how an answer is to be taken
        "age", "cache-control", "date", "expires", "location", "pragma", "retry-after", "vary",
        // how the content is to be read
        "content-encoding", "content-type", "content-range"};
    // clang-format on
    // With `_`: a second name of a field on the list for CGI-like servers.
    return name.find('_') != std::string_view::npos ||
           std::any_of(k_forbidden.begin(), k_forbidden.end(),
                       [&](std::string_view f) { return same_name(f, name); });
}

ChunkScanner::Step ChunkScanner::next(std::string_view in) {
    switch (state_) {
        case State::size_line:
            return read_size_line(in);
        case State::payload:
            return read_payload(in);
        case State::data_end:
            return read_data_end(in);
        case State::trailers:
            return read_trailers(in);
        case State::done:
            return {};
        case State::failed:
            break;
    }
    return fail();
}

ChunkScanner::Step ChunkScanner::fail() {
    state_ = State::failed;
    return {Kind::error, 0, {}, false, 0};
}

std::optional<std::string_view> ChunkScanner::take_line(std::string_view in, std::size_t& consumed) {
    const std::size_t lf = in.find('\n');
    const std::size_t part = lf == std::string_view::npos ? in.size() : lf + 1;
    if (cut_.size() + part > k_max_line) {
        line_failed_ = true;
        return std::nullopt;
    }
    cut_used_ = !cut_.empty() || lf == std::string_view::npos;
    if (cut_used_) cut_.append(in.substr(0, part));
    consumed = part;
    if (lf == std::string_view::npos) return std::nullopt;
    const std::string_view line = cut_used_ ? std::string_view(cut_) : in.substr(0, part);
    // Only CRLF ends a chunk line (RFC 9112 erratum 7633); a CR elsewhere is no token either.
    if (line.size() < 2 || line[line.size() - 2] != '\r') line_failed_ = true;
    return line;
}

ChunkScanner::Step ChunkScanner::read_size_line(std::string_view in) {
    Step step;
    // The line before, which was handed out as a view of cut_.
    if (cut_used_ && !cut_.empty() && cut_.back() == '\n') cut_.clear();
    const auto line = take_line(in, step.consumed);
    if (line_failed_) return fail();
    if (!line) {
        step.kind = Kind::more;
        return step;
    }
    const SizeLine parsed = parse_size_line(line->substr(0, line->size() - 2));
    if (!parsed.valid) return fail();
    step.kind = Kind::size_line;
    step.bytes = *line;
    step.plain = parsed.plain;
    step.size = left_ = parsed.size;
    state_ = parsed.size == 0 ? State::trailers : State::payload;
    return step;
}

ChunkScanner::Step ChunkScanner::read_payload(std::string_view in) {
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in.size()));
    if (part == 0) return {};
    left_ -= part;
    if (left_ == 0) state_ = State::data_end;
    return {Kind::payload, part, in.substr(0, part), true, 0};
}

ChunkScanner::Step ChunkScanner::read_data_end(std::string_view in) {
    std::size_t consumed = 0;
    if (!cr_seen_ && !in.empty()) {
        if (in.front() != '\r') return fail();
        cr_seen_ = true;
        consumed = 1;
    }
    if (cr_seen_ && consumed < in.size()) {
        if (in[consumed] != '\n') return fail();
        cr_seen_ = false;
        ++consumed;
        state_ = State::size_line;
    }
    if (consumed == 0) return {};
    return {Kind::data_end, consumed, in.substr(0, consumed), true, 0};
}

ChunkScanner::Step ChunkScanner::read_trailers(std::string_view in) {
    if (!trailers_) trailers_ = std::make_unique<Trailers>();
    std::string& text = trailers_->text;
    std::size_t consumed = 0;
    while (consumed < in.size()) {
        const std::size_t lf = in.find('\n', consumed);
        const std::size_t end = lf == std::string_view::npos ? in.size() : lf + 1;
        if (text.size() + (end - consumed) > k_max_trailers) return fail();
        const std::size_t line_start = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
        text.append(in.substr(consumed, end - consumed));
        consumed = end;
        if (lf == std::string_view::npos) break;
        const std::string_view line = std::string_view(text).substr(line_start);
        if (line.size() < 2 || line[line.size() - 2] != '\r') return fail();
        if (line.size() != 2) continue;
        Fields all;
        const std::string_view lines = std::string_view(text).substr(0, line_start);
        if (parse_fields(lines, all)) return fail();
        for (const Field& field : all.all())
            if (!is_forbidden_trailer(field.name)) trailers_->fields.add(field.name, field.value);
        if (size_when_written(trailers_->fields) > k_max_trailers) return fail();
        state_ = State::done;
        return {Kind::trailers, consumed, {}, trailers_->fields.all().empty() && line_start == 0, 0};
    }
    return {Kind::more, consumed, {}, true, 0};
}

const Fields& ChunkScanner::trailers() const {
    static const Fields none;
    return trailers_ ? trailers_->fields : none;
}

}  // namespace noren::proxy::http
