#include "config/render.hpp"

#include <algorithm>
#include <string_view>

#include "config/ascii.hpp"
#include "config/keys.hpp"

namespace noren::config {

namespace {

bool is_plain_char(char c) {
    constexpr std::string_view others = "_-./:*";
    return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
}

/// Whether YAML, of any version and reader, takes the text as it stands for a number or for text with no
/// other meaning. Cautious: what is not sure goes into quotes.
bool is_plain(std::string_view text) {
    if (text.empty() || text.back() == ':' || !std::all_of(text.begin(), text.end(), is_plain_char))
        return false;
    const char first = text.front();
    const bool starts_like_text = first == '/' || is_digit(first) || is_letter(first);
    constexpr std::string_view k_words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
    // `0660` is 660 to some readers and 432 to others.
    const bool is_octal = first == '0' && text.size() > 1 && std::all_of(text.begin(), text.end(), is_digit);
    return starts_like_text && !is_octal &&
           std::find(std::begin(k_words), std::end(k_words), lower) == std::end(k_words);
}

std::string quoted(std::string_view text) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += {'\\', c};
        } else if (is_control(c)) {
            out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
        } else {
            out += c;
        }
    }
    return out += '"';
}

std::string scalar(const Value& value) {
    return is_plain(value.text) ? value.text : quoted(value.text);
}

/// How many sections lead to the keys of this one.
std::size_t depth_of(std::string_view section) {
    if (section.empty()) return 0;
    return 1 + static_cast<std::size_t>(std::count(section.begin(), section.end(), '.'));
}

std::string heading(std::string_view section) {
    const std::string indent(2 * (depth_of(section) - 1), ' ');
    const std::string_view name = section.substr(section.rfind('.') + 1);
    return (indent.empty() ? "\n" : indent) + std::string(name) + ":\n";
}

/// `key: value`, or the key and one indented line for each item of a list.
std::string line(const Key& key, const Config& config) {
    const std::string indent(2 * depth_of(key.section), ' ');
    const Value value = key.write(config);
    std::string out = indent + std::string(key.name) + ':';
    if (value.kind != Value::Kind::list || value.items.empty())
        return out + ' ' + render_inline(value) + '\n';
    for (const Value& item : value.items)
        out += '\n' + indent + "  - " + scalar(item);
    return out + '\n';
}

}  // namespace

std::string render_inline(const Value& value) {
    if (value.kind != Value::Kind::list) return scalar(value);
    std::string out = "[";
    for (const Value& item : value.items) {
        if (out.size() > 1) out += ", ";
        // `a:b` inside [] is one text to YAML 1.2 but a map to some readers.
        out += item.text.find(':') == std::string::npos ? scalar(item) : quoted(item.text);
    }
    return out + ']';
}

std::string render(const Config& config) {
    std::string out;
    std::string_view section;
    for (const Key& key : keys()) {
        if (key.section != section) {
            section = key.section;
            out += heading(section);
        }
        out += line(key, config);
    }
    return out;
}

}  // namespace noren::config
