#include "metrics/observe/json_sieve.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace noren::metrics {
namespace {

// Deeper than any answer; Python's own parser gives up at about a thousand.
constexpr std::size_t k_max_depth = 512;
constexpr std::size_t k_idle_levels = 64;  // kept between documents
constexpr std::size_t k_max_key = 64;

/// Bytes inside a string that mean something: the quote, the backslash, and controls, which are not allowed
/// raw.
constexpr std::array<bool, 256> k_special = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0; c < 0x20; ++c)
        table[c] = true;
    table['"'] = table['\\'] = true;
    return table;
}();

/// The first special byte, or end. Eight bytes at a time where there are so many: most of a body is strings.
const char* find_special(const char* at, const char* end) {
    constexpr std::uint64_t k_ones = ~std::uint64_t{0} / 255, k_highs = k_ones * 0x80;
    // Sets the high bit of every byte below the limit, and maybe of some above the first such: a borrow.
    const auto below = [](std::uint64_t word, unsigned limit) {
        return (word - k_ones * limit) & ~word & k_highs;
    };
    if constexpr (std::endian::native == std::endian::little) {
        for (; end - at >= 8; at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, at, sizeof word);
            const std::uint64_t special =
                below(word, 0x20) | below(word ^ (k_ones * '"'), 1) | below(word ^ (k_ones * '\\'), 1);
            if (special != 0) return at + std::countr_zero(special) / 8;
        }
    }
    while (at != end && !k_special[static_cast<unsigned char>(*at)])
        ++at;
    return at;
}

bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

void JsonSieve::reset() {
    state_ = State::value;
    if (levels_.capacity() > k_idle_levels) std::vector<Level>().swap(levels_);
    levels_.clear();
    tree_.clear();
    overflowed_ = false;
    key_.clear();
    key_overlong_ = false;
    member_ = nullptr;
    high_surrogate_ = 0;
}

void JsonSieve::feed(std::string_view bytes) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at != end) {
        switch (state_) {
            case State::failed:
                return;
            case State::string:
                at = scan_string(at, end);
                break;
            case State::escape:
                escaped(*at++);
                break;
            case State::hex:
                hex_digit(*at++);
                break;
            case State::number:
                at = scan_number(at, end);
                break;
            case State::literal:
                at = scan_literal(at, end);
                break;
            default:
                at = scan_structure(at, end);
                break;
        }
    }
}

bool JsonSieve::finish() {
    if (state_ == State::number) end_number();
    return state_ == State::after_value && levels_.empty();
}

/// What stands between strings, numbers and literals.
const char* JsonSieve::scan_structure(const char* at, const char* end) {
    while (at != end) {
        const char c = *at++;
        if (is_blank(c)) continue;
        switch (state_) {
            case State::after_value:
                after_value(c);
                break;
            case State::colon:
                if (c != ':') return fail(), at;
                state_ = State::value;
                break;
            case State::first_key:
            case State::key:
                if (c == '"') return begin_string(true), at;
                if (c != '}' || state_ == State::key) return fail(), at;
                close(true);
                break;
            case State::first_element:
            case State::value:
                if (c == ']' && state_ == State::first_element) {
                    close(false);
                    break;
                }
                begin_value(c);
                if (c != '{' && c != '[') return at;
                break;
            default:
                return at - 1;  // failed, or the insides of a scalar
        }
    }
    return at;
}

void JsonSieve::begin_value(char c) {
    switch (c) {
        case '"':
            return begin_string(false);
        case '{':
            return open(true);
        case '[':
            return open(false);
        case 't':
            return begin_literal("true");
        case 'f':
            return begin_literal("false");
        case 'n':
            return begin_literal("null");
        case 'N':
            return begin_literal("NaN");
        case 'I':
            return begin_literal("Infinity");
        default:
            return c == '-' || is_digit(c) ? begin_number(c) : fail();
    }
}

void JsonSieve::after_value(char c) {
    if (levels_.empty()) return fail();
    if (c == ',') {
        state_ = levels_.back().is_object ? State::key : State::value;
    } else if (c == '}' || c == ']') {
        close(c == '}');
    } else {
        fail();
    }
}

/// Is the value that begins now one to keep?
bool JsonSieve::keeping() const {
    if (levels_.empty()) return true;
    const Level& level = levels_.back();
    if (level.node == JsonTree::k_none) return false;
    if (level.is_object) return member_ != nullptr;
    if (level.schema == nullptr) return false;
    // Of a document that is an array, as some engines answer, the first element stands for all.
    return levels_.size() > 1 || !tree_.has_children(level.node);
}

std::uint32_t JsonSieve::add(JsonType type, bool truthy) {
    if (levels_.empty()) return tree_.add(JsonTree::k_none, nullptr, type, truthy);
    const Level& level = levels_.back();
    if (!level.is_object && level.node != JsonTree::k_none) tree_.set_truthy(level.node);
    if (!keeping()) return JsonTree::k_none;
    if (!tree_.has_room(level.in_array)) {
        overflowed_ = true;
        return JsonTree::k_none;
    }
    return tree_.add(level.node, member_, type, truthy);
}

void JsonSieve::open(bool is_object) {
    if (levels_.size() >= k_max_depth) return fail();
    const JsonSchema* below = schema_;
    if (!levels_.empty())
        below = levels_.back().is_object ? (member_ ? member_->schema : nullptr) : levels_.back().schema;
    const bool in_array = !is_object || (!levels_.empty() && levels_.back().in_array);
    const std::uint32_t node = add(is_object ? JsonType::object : JsonType::array, false);
    levels_.push_back({is_object, in_array, node, node == JsonTree::k_none ? nullptr : below});
    member_ = nullptr;
    state_ = is_object ? State::first_key : State::first_element;
}

void JsonSieve::close(bool is_object) {
    if (levels_.empty() || levels_.back().is_object != is_object) return fail();
    levels_.pop_back();
    value_done();
}

void JsonSieve::value_done() {
    state_ = State::after_value;
    member_ = nullptr;
}

// --- strings

void JsonSieve::begin_string(bool is_key) {
    in_key_ = is_key;
    state_ = State::string;
    if (is_key) {
        const Level& level = levels_.back();
        if (level.node != JsonTree::k_none) tree_.set_truthy(level.node);
        keep_string_ = level.schema != nullptr;
    } else {
        keep_string_ = add(JsonType::string, false) != JsonTree::k_none;
    }
}

const char* JsonSieve::scan_string(const char* at, const char* end) {
    const char* const begin = at;
    at = find_special(at, end);
    const std::string_view run(begin, static_cast<std::size_t>(at - begin));
    if (at == end) return capture(run), at;
    const char c = *at++;
    if (c == '"' && in_key_ && key_.empty() && high_surrogate_ == 0) {
        end_key(run);  // a key in one part, as nearly all are
        return at;
    }
    capture(run);
    if (c == '"') {
        end_string();
    } else if (c == '\\') {
        state_ = State::escape;
    } else {
        fail();
    }
    return at;
}

void JsonSieve::capture(std::string_view bytes) {
    if (bytes.empty() || !keep_string_) return;
    settle_surrogate();
    if (!in_key_) return tree_.append_text(bytes);
    key_overlong_ = key_overlong_ || key_.size() + bytes.size() > k_max_key;
    if (!key_overlong_) key_.append(bytes);
}

void JsonSieve::end_string() {
    settle_surrogate();
    if (in_key_) return end_key(key_);
    if (keep_string_) tree_.end_text();
    value_done();
}

void JsonSieve::end_key(std::string_view key) {
    member_ = keep_string_ && !key_overlong_ ? levels_.back().schema->find(key) : nullptr;
    key_.clear();
    key_overlong_ = false;
    state_ = State::colon;
}

void JsonSieve::escaped(char c) {
    constexpr std::string_view k_from = "\"\\/bfnrt";
    constexpr std::string_view k_to = "\"\\/\b\f\n\r\t";
    state_ = State::string;
    if (c == 'u') {
        state_ = State::hex;
        hex_left_ = 4;
        hex_value_ = 0;
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
    hex_value_ = hex_value_ << 4 | digit;
    if (--hex_left_ > 0) return;
    state_ = State::string;
    if (high_surrogate_ != 0 && hex_value_ >= 0xdc00 && hex_value_ <= 0xdfff) {
        const std::uint32_t high = std::exchange(high_surrogate_, 0);
        return append_code_point(0x10000 + ((high - 0xd800) << 10) + (hex_value_ - 0xdc00));
    }
    settle_surrogate();
    if (hex_value_ >= 0xd800 && hex_value_ <= 0xdbff) {
        high_surrogate_ = hex_value_;
    } else {
        append_code_point(hex_value_);
    }
}

/// A surrogate that found no partner is a character all the same; in UTF-8 it can only be shown as U+FFFD.
void JsonSieve::settle_surrogate() {
    if (std::exchange(high_surrogate_, 0) != 0) append_code_point(0xfffd);
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

// --- numbers

void JsonSieve::begin_number(char c) {
    number_.begin(c);
    state_ = State::number;
}

const char* JsonSieve::scan_number(const char* at, const char* end) {
    at = number_.scan(at, end);
    if (at == end) return at;
    if (*at == 'I' && number_.only_minus()) {
        begin_literal("Infinity");
        return at + 1;
    }
    end_number();
    return at;
}

void JsonSieve::end_number() {
    if (!number_.complete()) return fail();
    const std::uint32_t node =
        add(number_.is_integer() ? JsonType::integer : JsonType::number, !number_.is_zero());
    if (node != JsonTree::k_none)
        if (const auto value = number_.value()) tree_.set_integer(node, *value);
    value_done();
}

// --- true, false, null, NaN, Infinity

void JsonSieve::begin_literal(std::string_view literal) {
    literal_ = literal;
    literal_at_ = 1;
    state_ = State::literal;
}

const char* JsonSieve::scan_literal(const char* at, const char* end) {
    while (at != end) {
        if (*at++ != literal_[literal_at_]) return fail(), at;
        if (++literal_at_ == literal_.size()) return end_literal(), at;
    }
    return at;
}

void JsonSieve::end_literal() {
    switch (literal_.front()) {
        case 't':
        case 'f':
            add(JsonType::boolean, literal_.front() == 't');
            break;
        case 'n':
            add(JsonType::null, false);
            break;
        default:
            add(JsonType::number, true);
            break;
    }
    value_done();
}

}  // namespace noren::metrics
