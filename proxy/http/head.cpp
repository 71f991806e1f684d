#include "proxy/http/head.hpp"

#include <algorithm>
#include <array>

#include "proxy/http/max_forwards.hpp"
#include "proxy/http/target.hpp"

namespace noren::proxy::http {
namespace {

constexpr auto k_npos = std::string_view::npos;

/// tchar of RFC 9110 5.6.2.
constexpr std::array<bool, 256> k_tchar = [] {
    std::array<bool, 256> table{};
    for (const char c :
         std::string_view("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
        table[static_cast<unsigned char>(c)] = true;
    return table;
}();

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// field-vchar, SP, HTAB and obs-text of RFC 9110 5.5: every byte but controls.
constexpr std::array<bool, 256> k_field_text = [] {
    std::array<bool, 256> table{};
    for (std::size_t byte = 0; byte < table.size(); ++byte)
        table[byte] = byte == '\t' || (byte >= 0x20 && byte != 0x7f);
    return table;
}();

/// All of them are in the table. Without a branch for each: nearly always they are.
bool all_in(const std::array<bool, 256>& table, std::string_view text) {
    bool all = true;
    for (const char c : text)
        all &= table[static_cast<unsigned char>(c)];
    return all;
}

bool is_field_text(std::string_view text) {
    return all_in(k_field_text, text);
}

/// The line up to CRLF, which is taken off as well. The scanner has made sure of the CRLF.
std::string_view take_line(std::string_view& text) {
    const std::size_t end = text.find("\r\n");
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == k_npos ? text.size() : end + 2);
    return line;
}

struct Version {
    int minor = -1;
    std::optional<HeadError> error;
};

/// HTTP-version of RFC 9112 2.3: "HTTP/" DIGIT "." DIGIT.
Version parse_version(std::string_view text) {
    const bool well_formed = text.size() == 8 && text.substr(0, 5) == "HTTP/" && is_digit(text[5]) &&
                             text[6] == '.' && is_digit(text[7]);
    if (!well_formed) return {-1, HeadError{400, "the request line does not end in an HTTP version"}};
    if (text[5] != '1') return {-1, HeadError{505, "only HTTP/1.0 and HTTP/1.1 are spoken here"}};
    // A higher minor version is answered as the highest we speak (RFC 9110 2.5).
    return {text[7] == '0' ? 0 : 1, std::nullopt};
}

std::optional<HeadError> check_method(std::string_view method) {
    if (!is_token(method)) return HeadError{400, "the method is not a token"};
    if (method.size() > 32) return HeadError{501, "the method is unknown"};
    if (method == "CONNECT") return HeadError{405, "a gateway opens no tunnels"};
    if (method == "TRACE") return HeadError{405, "TRACE would echo credentials and is not served"};
    // PRI is the HTTP/2 connection preface (RFC 9113 3.4).
    if (method == "PRI") return HeadError{505, "HTTP/2 is not spoken here"};
    return std::nullopt;
}

/// Exactly one valid Host with HTTP/1.1 (RFC 9112 3.2); an absolute-form target takes its place.
std::optional<HeadError> settle_authority(RequestHead& head, std::string_view from_target) {
    const std::size_t hosts = head.fields.count("host");
    if (hosts > 1) return HeadError{400, "more than one Host field"};
    if (hosts == 0 && head.minor == 1) return HeadError{400, "no Host field"};
    const std::string_view host = head.fields.value("host");
    if (hosts == 1 && !is_valid_authority(host))
        return HeadError{400, "the Host field is not a host and port"};
    head.authority = from_target.empty() ? host : from_target;
    return std::nullopt;
}

/// Each option may take any field away, so a long list next to many fields would cost their product. Who
/// means well sends two or three.
bool has_endless_options(const Fields& fields) {
    constexpr std::size_t k_most = 64;
    std::size_t options = 0;
    fields.for_each_of("connection", [&](std::string_view) { ++options; });
    return options > k_most;
}

/// The first line starts with a token: a TLS hello or other garbage shows at its first byte. A CR may be half
/// of an empty line.
bool may_begin_head(std::string_view buffer) {
    return buffer.empty() || k_tchar[static_cast<unsigned char>(buffer[0])] || buffer[0] == '\r';
}

}  // namespace

bool same_letters(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    return text;
}

std::size_t Fields::count(std::string_view name) const {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [&](const Field& f) { return same_name(f.name, name); }));
}

std::string_view Fields::value(std::string_view name) const {
    const auto it =
        std::find_if(all_.begin(), all_.end(), [&](const Field& f) { return same_name(f.name, name); });
    return it == all_.end() ? std::string_view{} : it->value;
}

bool Fields::lists(std::string_view name, std::string_view token) const {
    bool found = false;
    for_each_of(name, [&](std::string_view element) { found = found || same_name(element, token); });
    return found;
}

bool is_token(std::string_view text) {
    return !text.empty() && all_in(k_tchar, text);
}

std::size_t leading_empty_line(std::string_view buffer) {
    return buffer.substr(0, 2) == "\r\n" ? 2 : 0;
}

std::variant<std::monostate, std::size_t, HeadError> HeadScanner::scan(std::string_view buffer) {
    if (looked_at_ == 0 && !may_begin_head(buffer)) return HeadError{400, "these bytes are not HTTP"};
    while (looked_at_ < buffer.size()) {
        const std::size_t lf = buffer.find('\n', looked_at_);
        if (lf == k_npos) {
            looked_at_ = buffer.size();
            break;
        }
        looked_at_ = lf + 1;
        // A lone LF ends a line for some parsers and not for others (RFC 9112 2.2 lets us refuse it).
        if (lf == 0 || buffer[lf - 1] != '\r') return HeadError{400, "a line ends in LF without CR"};
        const bool empty_line = lf == line_start_ + 1;
        line_start_ = lf + 1;
        if (lf + 1 > limits_.bytes) break;
        if (empty_line) return lf + 1;
        // The first line is not a field.
        if (++lines_ > limits_.fields + 1) return HeadError{431, "too many header fields"};
    }
    if (buffer.size() <= limits_.bytes && looked_at_ <= limits_.bytes) return std::monostate{};
    if (lines_ == 0) return HeadError{414, "the request line is too long"};
    return HeadError{431, "the header fields are too large"};
}

std::optional<HeadError> parse_fields(std::string_view lines, Fields& into) {
    while (!lines.empty()) {
        const std::string_view line = take_line(lines);
        if (is_blank(line.empty() ? '\0' : line.front()))
            return HeadError{400, "a header field is folded over two lines"};  // obs-fold, RFC 9112 5.2
        const std::size_t colon = line.find(':');
        if (colon == k_npos) return HeadError{400, "a header line has no colon"};
        const std::string_view name = line.substr(0, colon);
        if (!is_token(name))
            return HeadError{400, "a header field name is not a token"};  // also: blank before the colon
        const std::string_view value = trim(line.substr(colon + 1));
        if (!is_field_text(value)) return HeadError{400, "a header field value holds a control character"};
        into.add(name, value);
    }
    return std::nullopt;
}

std::variant<RequestHead, HeadError> parse_request_head(std::string_view head) {
    RequestHead request;
    head.remove_suffix(2);  // the empty line
    const std::string_view line = take_line(head);
    const std::size_t first = line.find(' ');
    const std::size_t last = line.rfind(' ');
    if (first == k_npos || first == last)
        return HeadError{400, "the request line is not method, target and version"};
    request.method = line.substr(0, first);
    if (const auto error = check_method(request.method)) return *error;
    const Version version = parse_version(line.substr(last + 1));
    if (version.error) return *version.error;
    request.minor = version.minor;

    const Target target = parse_target(line.substr(first + 1, last - first - 1), request.method);
    if (target.error) return *target.error;
    request.target = target.origin_form;
    if (const auto error = parse_fields(head, request.fields)) return *error;
    if (has_endless_options(request.fields)) return HeadError{431, "Connection lists too many options"};
    if (const auto error = settle_authority(request, target.authority)) return *error;
    const MaxForwards forwards = max_forwards(request.method, request.fields);
    if (forwards.error) return *forwards.error;
    request.max_forwards = forwards.value;
    return request;
}

std::variant<ResponseHead, HeadError> parse_response_head(std::string_view head) {
    ResponseHead response;
    head.remove_suffix(2);
    const std::string_view line = take_line(head);
    const Version version = parse_version(line.substr(0, 8));
    if (version.error || line.size() < 12 || line[8] != ' ')
        return HeadError{502, "the status line is not an HTTP/1.x one"};
    response.minor = version.minor;
    const std::string_view code = line.substr(9, 3);
    if (!std::all_of(code.begin(), code.end(), is_digit) || code[0] < '1' || code[0] > '5')
        return HeadError{502, "the status code is not 100 to 599"};
    response.status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
    // "HTTP/1.1 200" without the blank before an empty reason phrase is common and unambiguous.
    if (line.size() > 12 && line[12] != ' ') return HeadError{502, "the status code is not three digits"};
    response.reason = line.size() > 13 ? line.substr(13) : std::string_view{};
    if (!is_field_text(response.reason)) return HeadError{502, "the reason phrase holds a control character"};
    if (const auto error = parse_fields(head, response.fields)) return HeadError{502, error->detail};
    if (has_endless_options(response.fields)) return HeadError{502, "Connection lists too many options"};
    return response;
}

}  // namespace noren::proxy::http
