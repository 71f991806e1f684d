#include "tests/sim/json_text.hpp"

#include <cstdio>

namespace sim {

namespace {

void append_unicode_escape(std::string& out, unsigned char c) {
    constexpr std::string_view k_hex = "0123456789abcdef";
    out += "\\u00";
    out += k_hex[c >> 4U];
    out += k_hex[c & 15U];
}

}  // namespace

std::string quoted(std::string_view text, Escapes escapes) {
    std::string out = "\"";
    out.reserve(text.size() + 16);
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool html = escapes == Escapes::go && (c == '<' || c == '>' || c == '&');
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (c == '\r') {
            out += "\\r";
        } else if (c == '\t') {
            out += "\\t";
        } else if (byte < 0x20 || html) {
            append_unicode_escape(out, byte);
        } else {
            out += c;
        }
    }
    out += '"';
    return out;
}

std::string hex(std::uint64_t value) {
    char text[17];
    const int size = std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return {text, static_cast<std::size_t>(size)};
}

}  // namespace sim
