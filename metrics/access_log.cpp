#include "metrics/access_log.hpp"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <system_error>

namespace noren::metrics {
namespace {

constexpr std::size_t k_max_string = 1024;

/// Length of the valid UTF-8 sequence at the front (RFC 3629), 0 if there is none.
std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    const unsigned char second = byte(1);
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool beyond = (lead == 0xed && second > 0x9f) || (lead == 0xf4 && second > 0x8f);
    return overlong || beyond ? 0 : length;
}

void append_escaped(std::string& out, std::string_view text) {
    text = text.substr(0, k_max_string);
    while (!text.empty()) {
        const char c = text.front();
        const std::size_t length = utf8_length(text);
        if (length == 0) {
            out.append("\\ufffd");
            text.remove_prefix(1);
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
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length);
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
