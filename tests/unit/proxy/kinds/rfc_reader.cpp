#include "tests/unit/proxy/kinds/rfc_reader.hpp"

#include <algorithm>
#include <cctype>

namespace noren::test {
namespace {

struct Stop {
    Verdict why;
};

void require(bool holds) {
    if (!holds) throw Stop{Verdict::refused};
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
bool is_tchar(char c) {  // RFC 9110 5.6.2
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}
bool is_text(char c) {  // HTAB, SP, VCHAR, obs-text
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte <= 0x7e) || byte >= 0x80;
}
bool is_reg_name_char(char c) {  // RFC 3986 3.2.2
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && std::string_view("-._~!$&'()*+,;=%").find(c) != std::string_view::npos);
}
bool is_target_char(char c) {  // RFC 3986 3.3, 3.4; noren's choice: []{}|^ as they come
    return is_reg_name_char(c) ||
           (c != '\0' && std::string_view(":@/?[]{}|^").find(c) != std::string_view::npos);
}

template <typename Is>
bool all(std::string_view text, Is&& is) {
    return std::all_of(text.begin(), text.end(), is);
}
bool is_token(std::string_view text) {
    return !text.empty() && all(text, is_tchar);
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

class Text {
  public:
    explicit Text(std::string_view text) : text_(text) {}

    /// RFC 9112 2.2; noren's choice: a CR or an LF without the other is refused.
    std::string_view line() {
        const std::size_t end = text_.find_first_of("\r\n", at_);
        if (end == std::string_view::npos) throw Stop{Verdict::unfinished};
        require(text_[end] == '\r');
        if (end + 1 == text_.size()) throw Stop{Verdict::unfinished};
        require(text_[end + 1] == '\n');
        const std::string_view found = text_.substr(at_, end - at_);
        at_ = end + 2;
        return found;
    }
    std::string_view bytes(std::size_t size) {
        if (text_.size() - at_ < size) throw Stop{Verdict::unfinished};
        at_ += size;
        return text_.substr(at_ - size, size);
    }
    std::string_view rest() { return bytes(text_.size() - at_); }
    std::size_t at() const { return at_; }

  private:
    std::string_view text_;
    std::size_t at_ = 0;
};

FieldLines field_lines(Text& text) {  // RFC 9112 5; noren's choice: obs-fold is refused
    FieldLines fields;
    for (std::string_view line = text.line(); !line.empty(); line = text.line()) {
        const std::size_t colon = line.find(':');
        require(colon != std::string_view::npos && is_token(line.substr(0, colon)));
        std::string_view value = line.substr(colon + 1);
        while (!value.empty() && is_blank(value.front()))
            value.remove_prefix(1);
        while (!value.empty() && is_blank(value.back()))
            value.remove_suffix(1);
        require(all(value, is_text));
        fields.emplace_back(line.substr(0, colon), value);
    }
    return fields;
}

int minor_of(std::string_view version) {
    require(version.size() == 8 && version.substr(0, 7) == "HTTP/1." && is_digit(version[7]));
    return version[7] == '0' ? 0 : 1;  // RFC 9110 2.5
}

void check_host(const Reading& message) {  // RFC 9112 3.2
    const auto hosts = message.values("host");
    require(hosts.size() == 1 || (hosts.empty() && message.minor == 0));
    if (hosts.empty()) return;
    const std::string_view host = hosts.front();
    const std::string_view name = host.substr(0, host.find(':'));
    const std::string_view port =
        name.size() == host.size() ? std::string_view() : host.substr(name.size() + 1);
    require(all(name, is_reg_name_char) && all(port, is_digit) && port.size() <= 5);
}

/// RFC 9112 7.1.1: *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] ) and nothing behind it.
bool is_extension(std::string_view text) {
    const auto skip = [&](auto&& is) {
        std::size_t n = 0;
        while (n < text.size() && is(text[n]))
            ++n;
        text.remove_prefix(n);
        return n;
    };
    const auto take = [&](char c) {
        const bool found = !text.empty() && text.front() == c;
        if (found) text.remove_prefix(1);
        return found;
    };
    for (;;) {
        if (text.empty()) return true;
        skip(is_blank);
        if (!take(';')) return false;
        skip(is_blank);
        if (skip(is_tchar) == 0) return false;
        const std::string_view behind_name = text;
        skip(is_blank);
        if (!take('=')) {
            text = behind_name;
            continue;
        }
        skip(is_blank);
        if (!take('"')) {
            if (skip(is_tchar) == 0) return false;
            continue;
        }
        while (!take('"')) {  // RFC 9110 5.6.4
            take('\\');
            if (text.empty() || !is_text(text.front())) return false;
            text.remove_prefix(1);
        }
    }
}

/// Noren's choice: at most sixteen digits, below 2^63, in a line of at most 256 bytes.
std::size_t chunk_size(std::string_view line, bool& has_extension) {
    require(line.size() + 2 <= 256);
    const std::size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
    require(digits > 0 && digits <= 16 && (digits < 16 || line[0] < '8'));
    require(is_extension(line.substr(digits)));
    has_extension = has_extension || digits < line.size();
    return std::stoull(std::string(line.substr(0, digits)), nullptr, 16);
}

void read_chunks(Reading& message, Text& text) {
    while (const std::size_t size = chunk_size(text.line(), message.has_extensions)) {
        message.body.append(text.bytes(size));
        require(text.bytes(1) == "\r");
        require(text.bytes(1) == "\n");
    }
    message.trailers = field_lines(text);
}

enum class Ends { by_length, by_chunks, with_connection };

/// RFC 9112 6.3; noren's choice: a list of equal lengths is refused, equal lines are one; Transfer-Encoding
/// is exactly one "chunked", never with a length, never in HTTP/1.0.
Ends how_it_ends(const Reading& message, std::size_t& length) {
    const auto codings = message.values("transfer-encoding");
    const auto lengths = message.values("content-length");
    if (!codings.empty()) {
        require(codings.size() == 1 && lower(codings.front()) == "chunked");
        require(lengths.empty() && message.minor == 1);
        return Ends::by_chunks;
    }
    if (lengths.empty()) return Ends::with_connection;
    for (const std::string& value : lengths) {
        require(!value.empty() && all(value, is_digit));
        const std::string number = value.substr(std::min(value.find_first_not_of('0'), value.size() - 1));
        require(number.size() < 19 || (number.size() == 19 && number <= "9223372036854775807"));
        require(value == lengths.front() || std::stoull(number) == length);
        length = std::stoull(number);
    }
    return Ends::by_length;
}

void read_body(Reading& message, Text& text, Ends ends, std::size_t length) {
    if (ends == Ends::by_chunks) read_chunks(message, text);
    if (ends == Ends::by_length) message.body = text.bytes(length);
    message.size = text.at();
}

template <typename Read>
Reading reading_of(Read&& read) {
    Reading message;
    try {
        read(message);
        message.verdict = Verdict::whole;
    } catch (const Stop& stop) {
        message.verdict = stop.why;
    }
    return message;
}

}  // namespace

std::vector<std::string> Reading::values(std::string_view name) const {
    std::vector<std::string> found;
    for (const auto& [known, value] : fields)
        if (lower(known) == name) found.push_back(value);
    return found;
}

Reading read_request(std::string_view bytes) {
    return reading_of([&](Reading& message) {
        Text text(bytes);
        const std::string_view line = text.line();
        const std::size_t first = line.find(' ');
        const std::size_t last = line.rfind(' ');
        require(first != last);
        const std::string_view method = line.substr(0, first);
        const std::string_view target = line.substr(first + 1, last - first - 1);
        // Noren's choice: no tunnel, no TRACE, no HTTP/2 preface, no method of more than 32 bytes.
        require(is_token(method) && method.size() <= 32 && method != "CONNECT" && method != "TRACE" &&
                method != "PRI");
        const bool is_origin_form = !target.empty() && target.front() == '/' && all(target, is_target_char);
        require(is_origin_form || (target == "*" && method == "OPTIONS"));
        message.minor = minor_of(line.substr(last + 1));
        message.start_line = line.substr(0, last);
        message.fields = field_lines(text);
        check_host(message);
        std::size_t length = 0;
        const Ends ends = how_it_ends(message, length);
        read_body(message, text, ends, length);
    });
}

Reading read_response(std::string_view bytes, std::string_view method) {
    return reading_of([&](Reading& message) {
        Text text(bytes);
        const std::string_view line = text.line();
        message.minor = minor_of(line.substr(0, 8));
        const std::string_view status = line.size() < 9 ? std::string_view() : line.substr(8, 4);
        require(status.size() == 4 && status[0] == ' ' && all(status.substr(1), is_digit) &&
                status[1] >= '1' && status[1] <= '5');
        // Noren's choice: the blank before an empty reason phrase may be missing.
        require(line.size() == 12 || (line[12] == ' ' && all(line.substr(13), is_text)));
        message.start_line = status.substr(1);
        message.fields = field_lines(text);
        std::size_t length = 0;
        const Ends ends = how_it_ends(message, length);
        const bool bodyless = method == "HEAD" || status[1] == '1' || message.start_line == "204" ||
                              message.start_line == "304";
        if (!bodyless) read_body(message, text, ends, length);
        if (!bodyless && ends == Ends::with_connection) message.body = text.rest();
        message.size = text.at();
    });
}

}  // namespace noren::test
