// The part of JsonSieve for strings, numbers and literals that are not whole where they begin: cut between
// two pieces, or strings with escapes.

#include <algorithm>
#include <array>
#include <utility>

#include "metrics/observe/byte_scan.hpp"
#include "metrics/observe/json_sieve.hpp"

namespace noren::metrics {

/// beginning: what stands between the opening quote and what comes next, which is no ordinary character.
void JsonSieve::begin_string(bool is_key, std::string_view beginning) {
    unfinished_.pending = true;
    string_begin_ = beginning.data();
    unfinished_.is_key = is_key;
    unfinished_.kept = is_key ? levels_.back().schema != nullptr : keeps();
    if (unfinished_.kept && !is_key) tree_.begin_text(place_.mark);
    state_ = State::string;
    capture(beginning);
}

const char* JsonSieve::resume_string(const char* at, const char* const end) {
    const char* const begin = at;
    at = find_string_special(at, end);
    // Prompts are full of escaped line ends, and nobody keeps them.
    if (!unfinished_.kept)
        while (end - at >= 2 && *at == '\\' && is_simple_escape(at[1]))
            at = find_string_special(at + 2, end);
    capture({begin, static_cast<std::size_t>(at - begin)});
    if (at == end) return at;
    if (*at == '"') {
        end_string(at);
    } else if (*at == '\\') {
        state_ = State::escape;
    } else {
        fail();
    }
    return at + 1;
}

void JsonSieve::capture(std::string_view bytes) {
    Unfinished& string = unfinished_;
    if (bytes.empty() || !string.kept) return;
    settle_surrogate();
    if (!string.is_key) return tree_.append_text(bytes);
    // What is over the bound is dropped: no schema has keys that long.
    const std::size_t take = std::min(bytes.size(), string.key.size() - string.key_size);
    std::copy_n(bytes.begin(), take, string.key.begin() + string.key_size);
    string.key_size += take;
}

void JsonSieve::end_string(const char* quote) {
    settle_surrogate();
    const Unfinished string = std::exchange(unfinished_, {});
    if (string.is_key) {
        end_key({string.key.data(), string.key_size});
    } else {
        if (string.kept) tree_.end_text();
        if (string_begin_) note_loose(string_begin_, quote);
        state_ = State::after_value;
    }
}

void JsonSieve::escaped(char c) {
    constexpr std::string_view k_from = "\"\\/bfnrt";
    constexpr std::string_view k_to = "\"\\/\b\f\n\r\t";
    state_ = State::string;
    if (c == 'u') {
        state_ = State::hex;
        unfinished_.hex_left = 4;
        unfinished_.hex_value = 0;
        return;
    }
    const std::size_t which = k_from.find(c);
    if (which == std::string_view::npos) return fail();
    capture(k_to.substr(which, 1));
}

void JsonSieve::hex_digit(char c) {
    std::uint32_t digit = 0;
    if (is_digit(c)) {
        digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
        digit = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
        digit = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
        return fail();
    }
    Unfinished& string = unfinished_;
    string.hex_value = string.hex_value << 4 | digit;
    if (--string.hex_left > 0) return;
    state_ = State::string;
    if (string.high_surrogate != 0 && string.hex_value >= 0xdc00 && string.hex_value <= 0xdfff) {
        const std::uint32_t high = std::exchange(string.high_surrogate, 0);
        return append_code_point(0x10000 + ((high - 0xd800) << 10) + (string.hex_value - 0xdc00));
    }
    settle_surrogate();
    if (string.hex_value >= 0xd800 && string.hex_value <= 0xdbff) {
        string.high_surrogate = string.hex_value;
    } else {
        append_code_point(string.hex_value);
    }
}

/// A surrogate that found no partner is a character all the same; in UTF-8 it can only be shown as U+FFFD.
void JsonSieve::settle_surrogate() {
    if (std::exchange(unfinished_.high_surrogate, 0) != 0) append_code_point(0xfffd);
}

void JsonSieve::append_code_point(std::uint32_t code) {
    if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
    std::array<char, 4> bytes{};
    std::size_t size = 0;
    const auto tail = [](std::uint32_t bits) { return static_cast<char>(0x80 | (bits & 0x3f)); };
    if (code < 0x80) {
        bytes = {static_cast<char>(code)};
        size = 1;
    } else if (code < 0x800) {
        bytes = {static_cast<char>(0xc0 | code >> 6), tail(code)};
        size = 2;
    } else if (code < 0x10000) {
        bytes = {static_cast<char>(0xe0 | code >> 12), tail(code >> 6), tail(code)};
        size = 3;
    } else {
        bytes = {static_cast<char>(0xf0 | code >> 18), tail(code >> 12), tail(code >> 6), tail(code)};
        size = 4;
    }
    capture({bytes.data(), size});
}

const char* JsonSieve::resume_number(const char* at, const char* const end) {
    JsonNumber& number = unfinished_.number;
    at = number.scan(at, end);
    if (at == end) return at;
    if (*at == 'I' && number.only_minus()) {
        unfinished_ = {};
        return scan_literal("Infinity", at, end);
    }
    end_number(std::exchange(unfinished_, {}).number);
    return at;
}

const char* JsonSieve::resume_literal(const char* at, const char* const end) {
    for (; at != end; ++at) {
        if (*at != unfinished_.literal[unfinished_.literal_at]) return fail(), at;
        if (++unfinished_.literal_at < unfinished_.literal.size()) continue;
        end_literal(std::exchange(unfinished_, {}).literal.front());
        return at + 1;
    }
    return at;
}

}  // namespace noren::metrics
