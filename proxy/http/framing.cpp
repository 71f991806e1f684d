#include "proxy/http/framing.hpp"

#include <limits>

namespace noren::proxy::http {
namespace {

struct Lengths {
    std::optional<std::uint64_t> value;
    bool bad = false;
};

/// Lines that repeat one number count as one, a list ("5, 5") is refused: RFC 9110 8.6 allows both.
Lengths content_length(const Fields& fields) {
    Lengths lengths;
    for (const Field& field : fields.all()) {
        if (!same_name(field.name, "content-length")) continue;
        const auto value = parse_length(field.value);
        lengths.bad = lengths.bad || !value || (lengths.value && *lengths.value != *value);
        lengths.value = value;
    }
    return lengths;
}

enum class Coding : unsigned char { none, chunked, other, malformed };

/// Only "chunked", once, alone, is understood.
Coding transfer_coding(const Fields& fields) {
    const std::size_t lines = fields.count("transfer-encoding");
    if (lines == 0) return Coding::none;
    if (lines == 1 && same_name(fields.value("transfer-encoding"), "chunked")) return Coding::chunked;
    // A second "chunked", or something behind it, is an attempt to be read in two ways, not a coding we lack.
    return fields.lists("transfer-encoding", "chunked") ? Coding::malformed : Coding::other;
}

}  // namespace

std::optional<std::uint64_t> parse_length(std::string_view text) {
    constexpr std::uint64_t k_max = std::numeric_limits<std::int64_t>::max();
    if (text.empty()) return std::nullopt;
    std::uint64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') return std::nullopt;
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (value > (k_max - digit) / 10) return std::nullopt;
        value = value * 10 + digit;
    }
    return value;
}

std::variant<Framing, HeadError> request_framing(const RequestHead& head) {
    const Lengths length = content_length(head.fields);
    switch (transfer_coding(head.fields)) {
        case Coding::other:
            return HeadError{501, "the transfer coding is not chunked"};
        case Coding::malformed:
            return HeadError{400, "Transfer-Encoding is not exactly one chunked"};
        case Coding::chunked:
            if (head.minor == 0) return HeadError{400, "Transfer-Encoding in an HTTP/1.0 request"};
            if (head.fields.has("content-length"))
                return HeadError{400, "both Transfer-Encoding and Content-Length"};
            return Framing{BodyKind::chunked, 0};
        case Coding::none:
            break;
    }
    if (length.bad) return HeadError{400, "Content-Length is not one decimal number"};
    if (length.value) return Framing{BodyKind::length, *length.value};
    return Framing{BodyKind::none, 0};
}

std::variant<Framing, HeadError> response_framing(const ResponseHead& head, std::string_view method) {
    const Lengths length = content_length(head.fields);
    const Coding coding = transfer_coding(head.fields);
    if (length.bad) return HeadError{502, "Content-Length is not one decimal number"};
    if (coding == Coding::other || coding == Coding::malformed)
        return HeadError{502, "the transfer coding is not exactly one chunked"};
    if (coding == Coding::chunked && (length.value || head.minor == 0))
        return HeadError{502, "Transfer-Encoding with Content-Length or in HTTP/1.0"};
    const bool bodyless = method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304;
    if (bodyless) return Framing{BodyKind::none, 0};
    if (coding == Coding::chunked) return Framing{BodyKind::chunked, 0};
    if (length.value) return Framing{BodyKind::length, *length.value};
    return Framing{BodyKind::until_close, 0};
}

bool keeps_alive(const Fields& fields, int minor) {
    if (fields.lists("connection", "close")) return false;
    return minor >= 1 || fields.lists("connection", "keep-alive");
}

std::string_view content_coding(const Fields& fields) {
    std::string_view coding;
    fields.for_each_of("content-encoding", [&](std::string_view each) {
        if (coding.empty() && !same_name(each, "identity")) coding = each;
    });
    return coding;
}

}  // namespace noren::proxy::http
