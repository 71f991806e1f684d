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
constexpr std::size_t k_longest_number = 24;  // 64 bits in decimal, or 16 digits with sign and thousandths

/// What stands in a JSON string as it is: ASCII but for controls, quote and backslash.
constexpr std::array<bool, 256> k_plain = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0x20; c < 0x80; ++c)
        table[c] = c != '"' && c != '\\';
    return table;
}();

bool is_plain(char c) {
    return k_plain[static_cast<unsigned char>(c)];
}

char* write(char* to, std::string_view text) {
    return std::copy(text.begin(), text.end(), to);
}

/// ".024" of 24
char* write_thousandths(char* to, std::int64_t thousandths) {
    *to++ = '.';
    for (int place = 100; place > 0; place /= 10)
        *to++ = static_cast<char>('0' + thousandths / place % 10);
    return to;
}

}  // namespace

void JsonLine::grow(std::size_t size) {
    text_.resize(std::max(text_.size() * 2, used_ + size));
}

void JsonLine::put(std::string_view text) {
    write(room(text.size()), text);
    used_ += text.size();
}

std::string JsonLine::finish() && {
    if (used_ == 0) put(",");
    put("}");
    text_.front() = '{';
    text_.resize(used_);
    return std::move(text_);
}

void JsonLine::escaped(std::string_view text) {
    text = text.substr(0, k_max_string);
    while (!text.empty()) {
        const auto plain =
            static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
        put(text.substr(0, plain));
        text.remove_prefix(plain);
        if (text.empty()) break;
        const char c = text.front();
        const Utf8Step step = utf8_step(text);
        if (!step.valid) {
            put("\\ufffd");
        } else if (c == '"' || c == '\\') {
            put("\\");
            put(text.substr(0, 1));
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
            put(escape.data());
        } else {
            put(text.substr(0, step.size));
        }
        text.remove_prefix(step.size);
    }
}

void JsonLine::put_value(std::string_view value) {
    put("\"");
    escaped(value);
    put("\"");
}

void JsonLine::put_value(std::int64_t value) {
    char* const begin = room(k_longest_number);
    used_ += static_cast<std::size_t>(std::to_chars(begin, begin + k_longest_number, value).ptr - begin);
}

void JsonLine::put_value(double value) {
    // JSON has no word for what is not finite.
    if (!std::isfinite(value) || std::abs(value) > k_most_number) return put("null");
    // In whole thousandths, which takes a tenth of the time of to_chars.
    const auto thousandths = std::llround(std::abs(value) * 1e3);
    char* const begin = room(k_longest_number);
    char* at = begin;
    if (std::signbit(value) && thousandths != 0) *at++ = '-';
    at = std::to_chars(at, begin + k_longest_number, thousandths / 1'000).ptr;
    at = write_thousandths(at, thousandths % 1'000);
    used_ += static_cast<std::size_t>(at - begin);
}

Rfc3339 rfc3339_now() {
    const auto now = std::chrono::system_clock::now();
    const auto milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    const std::time_t whole = static_cast<std::time_t>(milliseconds / 1000);
    constexpr std::size_t k_beginning = 19;  // 2026-01-31T23:59:59
    // Thousands of lines in a second begin alike.
    thread_local std::time_t second = 0;
    thread_local std::array<char, Rfc3339::size> text{};
    if (whole != second) {
        std::tm utc{};
        ::gmtime_r(&whole, &utc);
        std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
        second = whole;
    }
    *write_thousandths(text.data() + k_beginning, milliseconds % 1'000) = 'Z';
    return Rfc3339(text);
}

}  // namespace noren::metrics
