#include "config/value.hpp"

#include <algorithm>
#include <utility>

#include "config/ascii.hpp"

namespace noren::config {

namespace {

constexpr std::size_t k_longest_quote = 80;

std::string escape(char c) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    return {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
}

/// Cut before a whole UTF-8 character, so that a message stays valid UTF-8.
std::string_view cut(std::string_view text, std::size_t most) {
    if (text.size() <= most) return text;
    while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80)
        --most;
    return text.substr(0, most);
}

bool is_number(std::string_view text) {
    return !text.empty() && text.size() <= 20 && std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

Value Value::scalar(std::string text, int line, bool quoted) {
    Value value;
    value.kind = Kind::scalar;
    value.line = line;
    value.text = std::move(text);
    value.quoted = quoted;
    return value;
}

Value Value::list(std::vector<Value> items) {
    Value value;
    value.kind = Kind::list;
    value.items = std::move(items);
    return value;
}

std::string quote(std::string_view text) {
    const std::string_view shown = cut(text, k_longest_quote);
    std::string out = "\"";
    for (const char c : shown) {
        if (is_control(c)) {
            out += escape(c);
        } else {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
    }
    out += shown.size() < text.size() ? "...\"" : "\"";
    return out;
}

std::string describe(const Value& value) {
    switch (value.kind) {
        case Value::Kind::null:
            return "nothing";
        case Value::Kind::list:
            return "a list";
        case Value::Kind::map:
            return "a map of keys";
        case Value::Kind::unsupported:
            return value.text;
        case Value::Kind::scalar:
            break;
    }
    if (value.text.empty()) return "empty text";
    if (is_number(value.text)) return value.quoted ? quote(value.text) + " in quotes" : value.text;
    return quote(value.text);
}

}  // namespace noren::config
