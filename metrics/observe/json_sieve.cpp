#include "metrics/observe/json_sieve.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace noren::metrics {
namespace {

// Deeper than any answer; Python's own parser gives up at about a thousand.
constexpr std::size_t k_max_depth = 512;
constexpr std::size_t k_max_nodes = 4096;
constexpr std::size_t k_max_text = 64 * 1024;
constexpr std::size_t k_max_key = 64;
constexpr std::size_t k_max_string = 256;

/// Bytes inside a string that mean something: the quote, the backslash, and controls, which are not allowed
/// raw.
constexpr std::array<bool, 256> k_special = [] {
    std::array<bool, 256> table{};
    for (std::size_t c = 0; c < 0x20; ++c)
        table[c] = true;
    table['"'] = table['\\'] = true;
    return table;
}();

bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// The size of a text cut off somewhere, without the character that was cut through.
std::size_t whole_characters(std::string_view cut) {
    std::size_t size = cut.size();
    std::size_t tail = 0;
    while (tail < 3 && tail < size && (static_cast<unsigned char>(cut[size - 1 - tail]) & 0xc0) == 0x80)
        ++tail;
    if (tail == size) return size;
    const auto lead = static_cast<unsigned char>(cut[size - 1 - tail]);
    const std::size_t wants = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
    return tail < wants ? size - 1 - tail : size;
}

}  // namespace

const JsonSchema::Member* JsonSchema::find(std::string_view key) const {
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
    return found == members.end() ? nullptr : &*found;
}

// --- values

bool JsonValue::is(JsonType type) const {
    return sieve_ && sieve_->nodes_[node_].type == type;
}

JsonValue JsonValue::first() const {
    if (!sieve_ || sieve_->nodes_[node_].child == JsonSieve::k_none) return {};
    return {sieve_, sieve_->nodes_[node_].child};
}

JsonValue JsonValue::next() const {
    if (!sieve_ || sieve_->nodes_[node_].next == JsonSieve::k_none) return {};
    return {sieve_, sieve_->nodes_[node_].next};
}

JsonValue JsonValue::operator[](std::string_view key) const {
    JsonValue found;
    if (!is(JsonType::object)) return found;
    for (JsonValue child = first(); child; child = child.next()) {
        const JsonSieve::Node& node = sieve_->nodes_[child.node_];
        if (std::string_view(sieve_->text_).substr(node.key, node.key_size) == key) found = child;
    }
    return found;
}

bool JsonValue::truthy() const {
    return sieve_ && sieve_->nodes_[node_].truthy;
}

std::optional<std::int64_t> JsonValue::integer() const {
    if (!is(JsonType::integer) || !sieve_->nodes_[node_].whole) return std::nullopt;
    return sieve_->nodes_[node_].value;
}

std::optional<std::string_view> JsonValue::text() const {
    if (!is(JsonType::string)) return std::nullopt;
    const JsonSieve::Node& node = sieve_->nodes_[node_];
    return std::string_view(sieve_->text_).substr(static_cast<std::size_t>(node.value), node.text_size);
}

// --- the scanner

void JsonSieve::reset() {
    state_ = State::value;
    levels_.clear();
    nodes_.clear();
    text_.clear();
    overflowed_ = false;
    member_ = nullptr;
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
            case State::number:
                at = scan_number(at, end);
                break;
            default:
                step(*at++);
                break;
        }
    }
}

bool JsonSieve::finish() {
    if (state_ == State::number) end_number();
    return state_ == State::after_value && levels_.empty() && !overflowed_;
}

/// Everything but the insides of strings and numbers, which come in runs.
void JsonSieve::step(char c) {
    switch (state_) {
        case State::escape:
            return escaped(c);
        case State::hex:
            return hex_digit(c);
        case State::literal:
            return literal_step(c);
        default:
            break;
    }
    if (is_blank(c)) return;
    switch (state_) {
        case State::first_element:
            if (c == ']') return close(false);
            [[fallthrough]];
        case State::value:
            if (c == '"') return begin_string(false);
            if (c == '{') return open(true);
            if (c == '[') return open(false);
            if (c == '-' || is_digit(c)) return begin_number(c);
            return begin_literal(c);
        case State::first_key:
            if (c == '}') return close(true);
            [[fallthrough]];
        case State::key:
            return c == '"' ? begin_string(true) : fail();
        case State::colon:
            if (c != ':') return fail();
            state_ = State::value;
            return;
        case State::after_value:
            if (levels_.empty()) return fail();
            if (c == ',') {
                state_ = levels_.back().is_object ? State::key : State::value;
                return;
            }
            if (c == '}') return close(true);
            if (c == ']') return close(false);
            return fail();
        default:
            return fail();
    }
}

/// Is the value that begins now one to keep?
bool JsonSieve::keeping() const {
    if (levels_.empty()) return true;
    const Level& level = levels_.back();
    if (level.node == k_none) return false;
    if (level.is_object) return member_ != nullptr;
    if (level.schema == nullptr) return false;
    // Of a document that is an array, as some engines answer, the first element stands for all.
    return levels_.size() > 1 || nodes_[level.node].child == k_none;
}

std::uint32_t JsonSieve::add_node(JsonType type, bool truthy) {
    if (!levels_.empty() && !levels_.back().is_object && levels_.back().node != k_none)
        nodes_[levels_.back().node].truthy = true;
    if (!keeping()) return k_none;
    if (nodes_.size() >= k_max_nodes || text_.size() >= k_max_text) {
        overflowed_ = true;
        return k_none;
    }
    Node node;
    node.type = type;
    node.truthy = truthy;
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    if (!levels_.empty()) {
        if (levels_.back().is_object) {
            node.key = static_cast<std::uint32_t>(text_.size());
            node.key_size = static_cast<std::uint8_t>(member_->key.size());
            text_.append(member_->key);
        }
        Node& parent = nodes_[levels_.back().node];
        (parent.child == k_none ? parent.child : nodes_[parent.last_child].next) = index;
        parent.last_child = index;
    }
    nodes_.push_back(node);
    return index;
}

void JsonSieve::open(bool is_object) {
    if (levels_.size() >= k_max_depth) return fail();
    const JsonSchema* below = schema_;
    if (!levels_.empty())
        below = levels_.back().is_object ? (member_ ? member_->schema : nullptr) : levels_.back().schema;
    const std::uint32_t node = add_node(is_object ? JsonType::object : JsonType::array, false);
    levels_.push_back({is_object, node, node == k_none ? nullptr : below});
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
    high_surrogate_ = 0;
    state_ = State::string;
    if (is_key) {
        key_.clear();
        key_overlong_ = false;
        if (levels_.back().node != k_none) nodes_[levels_.back().node].truthy = true;
        kept_string_ = levels_.back().schema != nullptr;
        return;
    }
    string_truthy_ = false;
    const std::uint32_t node = add_node(JsonType::string, false);
    kept_string_ = node != k_none;
    if (kept_string_) nodes_[node].value = static_cast<std::int64_t>(text_.size());
    string_begin_ = static_cast<std::uint32_t>(text_.size());
}

const char* JsonSieve::scan_string(const char* at, const char* end) {
    const char* const begin = at;
    while (at != end && !k_special[static_cast<unsigned char>(*at)])
        ++at;
    if (at != begin) {
        settle_surrogate();
        capture({begin, static_cast<std::size_t>(at - begin)});
    }
    if (at == end) return at;
    const char c = *at++;
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
    string_truthy_ = true;
    if (!kept_string_) return;
    if (in_key_) {
        key_overlong_ = key_overlong_ || key_.size() + bytes.size() > k_max_key;
        if (!key_overlong_) key_.append(bytes);
        return;
    }
    const std::size_t have = text_.size() - string_begin_;
    if (have < k_max_string) text_.append(bytes.substr(0, k_max_string - have));
}

void JsonSieve::end_string() {
    settle_surrogate();
    if (in_key_) {
        const JsonSchema* schema = levels_.back().schema;
        member_ = schema && !key_overlong_ ? schema->find(key_) : nullptr;
        state_ = State::colon;
        return;
    }
    if (kept_string_) {
        nodes_.back().truthy = string_truthy_;
        if (text_.size() - string_begin_ == k_max_string)
            text_.resize(string_begin_ + whole_characters(std::string_view(text_).substr(string_begin_)));
        nodes_.back().text_size = static_cast<std::uint16_t>(text_.size() - string_begin_);
    }
    value_done();
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
    settle_surrogate();
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
        string_truthy_ = true;
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

// --- numbers: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?

void JsonSieve::begin_number(char c) {
    negative_ = c == '-';
    nonzero_ = c >= '1' && c <= '9';
    too_big_ = false;
    whole_ = true;
    magnitude_ = negative_ ? 0 : static_cast<std::uint64_t>(c - '0');
    part_ = negative_ ? NumberPart::minus : c == '0' ? NumberPart::zero : NumberPart::integer;
    state_ = State::number;
}

const char* JsonSieve::scan_number(const char* at, const char* end) {
    for (; at != end; ++at) {
        const char c = *at;
        const bool digit = is_digit(c);
        switch (part_) {
            case NumberPart::minus:
                if (c == 'I') {  // -Infinity
                    literal_ = "Infinity";
                    literal_at_ = 1;
                    state_ = State::literal;
                    return at + 1;
                }
                if (!digit) return fail(), at;
                part_ = c == '0' ? NumberPart::zero : NumberPart::integer;
                break;
            case NumberPart::zero:
            case NumberPart::integer:
                if (digit && part_ == NumberPart::integer) break;
                if (c == '.') {
                    part_ = NumberPart::point;
                } else if (c == 'e' || c == 'E') {
                    part_ = NumberPart::e;
                } else {
                    return end_number(), at;
                }
                whole_ = false;
                continue;
            case NumberPart::point:
                if (!digit) return fail(), at;
                part_ = NumberPart::fraction;
                break;
            case NumberPart::fraction:
                if (c == 'e' || c == 'E') {
                    part_ = NumberPart::e;
                    continue;
                }
                if (!digit) return end_number(), at;
                break;
            case NumberPart::e:
                if (c == '+' || c == '-') {
                    part_ = NumberPart::e_sign;
                    continue;
                }
                [[fallthrough]];
            case NumberPart::e_sign:
                if (!digit) return fail(), at;
                part_ = NumberPart::exponent;
                continue;
            case NumberPart::exponent:
                if (!digit) return end_number(), at;
                continue;
        }
        nonzero_ = nonzero_ || c != '0';
        if (!whole_) continue;
        const auto value = static_cast<std::uint64_t>(c - '0');
        too_big_ = too_big_ || magnitude_ > (std::numeric_limits<std::int64_t>::max() - value) / 10;
        if (!too_big_) magnitude_ = magnitude_ * 10 + value;
    }
    return at;
}

void JsonSieve::end_number() {
    const bool complete = part_ == NumberPart::zero || part_ == NumberPart::integer ||
                          part_ == NumberPart::fraction || part_ == NumberPart::exponent;
    if (!complete) return fail();
    const std::uint32_t node = add_node(whole_ ? JsonType::integer : JsonType::number, nonzero_);
    if (node != k_none && whole_ && !too_big_) {
        const auto magnitude = static_cast<std::int64_t>(magnitude_);
        nodes_[node].value = negative_ ? -magnitude : magnitude;
        nodes_[node].whole = true;
    }
    value_done();
}

// --- true, false, null, NaN, Infinity

void JsonSieve::begin_literal(char c) {
    switch (c) {
        case 't':
            literal_ = "true";
            break;
        case 'f':
            literal_ = "false";
            break;
        case 'n':
            literal_ = "null";
            break;
        case 'N':
            literal_ = "NaN";
            break;
        case 'I':
            literal_ = "Infinity";
            break;
        default:
            return fail();
    }
    literal_at_ = 1;
    state_ = State::literal;
}

void JsonSieve::literal_step(char c) {
    if (c != literal_[literal_at_]) return fail();
    if (++literal_at_ < literal_.size()) return;
    switch (literal_.front()) {
        case 't':
            add_node(JsonType::boolean, true);
            break;
        case 'f':
            add_node(JsonType::boolean, false);
            break;
        case 'n':
            add_node(JsonType::null, false);
            break;
        default:
            add_node(JsonType::number, true);
            break;
    }
    value_done();
}

}  // namespace noren::metrics
