#include "metrics/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "metrics/utf8.hpp"

namespace noren::metrics {
namespace {

constexpr std::size_t k_max_string = 1024;
constexpr double k_most_number = 1e15;

bool is_plain(char c) {
    return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x80 && c != '"' &&
           c != '\\';
}

void append_escaped(std::string& out, std::string_view text) {
    text = text.substr(0, k_max_string);
    while (!text.empty()) {
        const auto plain =
            static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
        out.append(text.substr(0, plain));
        text.remove_prefix(plain);
        if (text.empty()) break;
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
    // JSON has no word for what is not finite.
    if (!std::isfinite(value) || std::abs(value) > k_most_number) {
        text_.append("null");
        return *this;
    }
    // In whole thousandths, which takes a tenth of the time of to_chars.
    const auto thousandths = std::llround(std::abs(value) * 1e3);
    std::array<char, 32> digits{};
    const auto whole = std::to_chars(digits.data(), digits.data() + digits.size(), thousandths / 1'000);
    if (std::signbit(value) && thousandths != 0) text_.push_back('-');
    text_.append(digits.data(), whole.ptr);
    text_.push_back('.');
    for (int place = 100; place > 0; place /= 10)
        text_.push_back(static_cast<char>('0' + thousandths / place % 10));
    return *this;
}

std::string rfc3339_now() {
    const auto now = std::chrono::system_clock::now();
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    const std::time_t whole = static_cast<std::time_t>(milliseconds / 1000);
    // Thousands of lines in a second begin alike.
    thread_local std::time_t second = 0;
    thread_local std::array<char, 24> beginning{};
    if (whole != second) {
        std::tm utc{};
        ::gmtime_r(&whole, &utc);
        std::strftime(beginning.data(), beginning.size(), "%Y-%m-%dT%H:%M:%S", &utc);
        second = whole;
    }
    std::string text = beginning.data();
    text.push_back('.');
    for (int place = 100; place > 0; place /= 10)
        text.push_back(static_cast<char>('0' + milliseconds / place % 10));
    text.push_back('Z');
    return text;
}

}  // namespace noren::metrics
