#include "metrics/access_log.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <system_error>

#include "metrics/utf8.hpp"

namespace noren::metrics {
namespace {

constexpr std::size_t k_max_string = 1024;

void append_escaped(std::string& out, std::string_view text) {
    text = text.substr(0, k_max_string);
    while (!text.empty()) {
        const char c = text.front();
        const Utf8Step step = utf8_step(text);
        if (!step.valid) {
            out.append("\\ufffd");
            text.remove_prefix(step.size);
            continue;
        }
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
            out.append(escape.data());
        } else {
            out.append(text.substr(0, step.size));
        }
        text.remove_prefix(step.size);
    }
}

}  // namespace

void JsonLine::key(std::string_view name) {
    if (text_.size() > 1) text_.push_back(',');
    text_.append("\"").append(name).append("\":");
}

JsonLine& JsonLine::add(std::string_view name, std::string_view value) {
    key(name);
    text_.push_back('"');
    append_escaped(text_, value);
    text_.push_back('"');
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, std::int64_t value) {
    key(name);
    text_.append(std::to_string(value));
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, bool value) {
    key(name);
    text_.append(value ? "true" : "false");
    return *this;
}

JsonLine& JsonLine::add(std::string_view name, double value) {
    key(name);
    // to_chars knows no locale: the decimal point is a point. JSON has no word for what is not finite.
    std::array<char, 32> digits{};
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 3);
    const bool fits = std::isfinite(value) && end.ec == std::errc();
    text_.append(fits ? std::string_view(digits.data(), end.ptr) : std::string_view("null"));
    return *this;
}

std::string rfc3339_now() {
    const auto now = std::chrono::system_clock::now();
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    const std::time_t whole = static_cast<std::time_t>(milliseconds / 1000);
    std::tm utc{};
    ::gmtime_r(&whole, &utc);
    std::array<char, 40> text{};
    const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
    std::snprintf(text.data() + length, text.size() - length, ".%03dZ",
                  static_cast<int>(milliseconds % 1000));
    return text.data();
}

}  // namespace noren::metrics
