#include "metrics/engine/page_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <system_error>

#include "metrics/utf8.hpp"

namespace noren::metrics::engine {
namespace {

// More than any engine has on a series; a bound for the search for doubles among them.
constexpr int k_most_labels = 64;

bool is_blank(char c) {
    return c == ' ' || c == '\t';
}
bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    while (!text.empty() && (is_blank(text.back()) || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

void skip_blanks(std::string_view& text) {
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
}

/// Up to the next blank.
std::string_view take_word(std::string_view& text) {
    skip_blanks(text);
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    return word;
}

/// colons: allowed in names of metrics, not in those of labels.
std::string_view take_name(std::string_view& text, bool colons) {
    const auto is_first = [colons](char c) { return is_letter(c) || (colons && c == ':'); };
    std::size_t end = 0;
    while (end < text.size() && (is_first(text[end]) || (end > 0 && is_digit(text[end]))))
        ++end;
    const std::string_view name = text.substr(0, end);
    text.remove_prefix(end);
    return name;
}

bool is_metric_name(std::string_view text) {
    return !text.empty() && take_name(text, true).size() > 0 && text.empty();
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        if (!step.valid) return false;
        text.remove_prefix(step.size);
    }
    return true;
}

/// Behind the opening quote: what stands before the closing one, which is taken too.
std::optional<std::string_view> take_quoted(std::string_view& text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') {
            const std::string_view value = text.substr(0, i);
            text.remove_prefix(i + 1);
            return value;
        }
        if (text[i] != '\\') continue;
        ++i;
        if (i == text.size() || (text[i] != '\\' && text[i] != '"' && text[i] != 'n')) return std::nullopt;
    }
    return std::nullopt;
}

/// Where the closing brace is. Quoted braces do not count.
std::size_t end_of_labels(std::string_view text) {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (quoted && text[i] == '\\') {
            ++i;
        } else if (text[i] == '"') {
            quoted = !quoted;
        } else if (text[i] == '}' && !quoted) {
            return i;
        }
    }
    return std::string_view::npos;
}

bool are_labels(std::string_view text) {
    std::array<std::string_view, k_most_labels> seen;
    std::size_t count = 0;
    LabelReader reader(text);
    while (const auto label = reader.next()) {
        const auto end = seen.begin() + static_cast<std::ptrdiff_t>(count);
        if (count == seen.size() || std::find(seen.begin(), end, label->name) != end) return false;
        seen[count++] = label->name;
    }
    return reader.at_end();
}

bool is_timestamp(std::string_view text) {
    std::int64_t milliseconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), milliseconds);
    return error == std::errc() && end == text.data() + text.size();
}

bool read_sample(std::string_view text, Line& line) {
    line.name = take_name(text, true);
    if (line.name.empty()) return false;
    const std::size_t before = text.size();
    skip_blanks(text);
    bool apart = text.size() < before;
    if (!text.empty() && text.front() == '{') {
        text.remove_prefix(1);
        const std::size_t end = end_of_labels(text);
        if (end == std::string_view::npos) return false;
        line.labels = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (!are_labels(line.labels)) return false;
        apart = true;
    }
    if (!apart) return false;
    line.value = take_word(text);
    const auto number = parse_number(line.value);
    if (!number) return false;
    line.number = *number;
    skip_blanks(text);
    return text.empty() || is_timestamp(text);
}

Line::Kind read_comment(std::string_view text, Line& line) {
    const std::string_view word = take_word(text);
    if (word != "HELP" && word != "TYPE") return Line::Kind::comment;
    line.name = take_word(text);
    if (!is_metric_name(line.name)) return Line::Kind::malformed;
    if (word == "HELP") return Line::Kind::help;
    line.value = trimmed(text);
    constexpr std::array<std::string_view, 5> k_types = {"counter", "gauge", "histogram", "summary",
                                                         "untyped"};
    const bool known = std::find(k_types.begin(), k_types.end(), line.value) != k_types.end();
    return known ? Line::Kind::type : Line::Kind::malformed;
}

}  // namespace

std::optional<Line> PageReader::next() {
    if (rest_.empty()) return std::nullopt;
    const std::size_t end = rest_.find('\n');
    Line line;
    line.text = trimmed(rest_.substr(0, end));
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line.text.empty()) return line;
    if (!is_utf8(line.text)) {
        line.kind = Line::Kind::malformed;
    } else if (line.text.front() == '#') {
        line.kind = read_comment(line.text.substr(1), line);
    } else {
        line.kind = read_sample(line.text, line) ? Line::Kind::sample : Line::Kind::malformed;
    }
    return line;
}

std::optional<LabelReader::Label> LabelReader::next() {
    std::string_view text = rest_;
    skip_blanks(text);
    if (text.empty()) {
        rest_ = text;
        return std::nullopt;
    }
    Label label;
    label.name = take_name(text, false);
    skip_blanks(text);
    if (label.name.empty() || label.name == "__name__" || !text.starts_with('=')) return std::nullopt;
    text.remove_prefix(1);
    skip_blanks(text);
    if (!text.starts_with('"')) return std::nullopt;
    text.remove_prefix(1);
    const auto value = take_quoted(text);
    if (!value) return std::nullopt;
    label.value = *value;
    skip_blanks(text);
    if (!text.empty() && text.front() != ',') return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
    rest_ = text;
    return label;
}

std::string_view label_value(std::string_view labels, std::string_view name) {
    LabelReader reader(labels);
    while (const auto label = reader.next())
        if (label->name == name) return label->value;
    return {};
}

std::optional<double> parse_number(std::string_view text) {
    // from_chars takes no plus, and more than the format allows of what is no number: nan(...).
    const bool plus = text.starts_with('+');
    if (plus) text.remove_prefix(1);
    if (text.empty() || (plus && text.front() == '-') || text.find('(') != std::string_view::npos)
        return std::nullopt;
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

}  // namespace noren::metrics::engine
