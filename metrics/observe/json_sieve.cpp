#include "metrics/observe/json_sieve.hpp"

#include "metrics/observe/byte_scan.hpp"

namespace noren::metrics {
namespace {

// Deeper than any answer; Python's own parser gives up at about a thousand.
constexpr std::size_t k_max_depth = 512;
constexpr std::size_t k_usual_levels = 4;
constexpr std::size_t k_idle_levels = 64;  // kept between documents

bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

std::string_view between(const char* begin, const char* end) {
    return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

void JsonSieve::reset() {
    state_ = State::value;
    if (levels_.capacity() > k_idle_levels) std::vector<Level>().swap(levels_);
    levels_.clear();
    tree_.clear();
    overflowed_ = false;
    loose_.clear();
    place_ = {true, 0, schema_};
    if (unfinished_.pending) unfinished_ = {};
}

void JsonSieve::feed_borrowed(std::string_view bytes) {
    const char* at = piece_ = bytes.data();
    const char* const end = at + bytes.size();
    while (at != end) {
        switch (state_) {
            case State::failed:
                return;
            case State::string:
                at = resume_string(at, end);
                break;
            case State::escape:
                escaped(*at++);
                break;
            case State::hex:
                hex_digit(*at++);
                break;
            case State::number:
                at = resume_number(at, end);
                break;
            case State::literal:
                at = resume_literal(at, end);
                break;
            default:
                at = scan_structure(at, end);
                break;
        }
    }
}

bool JsonSieve::finish() {
    if (state_ == State::number) end_number(unfinished_.number);
    return state_ == State::after_value && levels_.empty();
}

/// A member that is whole and has no blanks in it falls through from its key to what stands behind its value.
[[gnu::flatten]] const char* JsonSieve::scan_structure(const char* at, const char* const end) {
    while (at != end) {
        switch (state_) {
            case State::first_key:
                if (*at == '}') {
                    close(true, true);
                    ++at;
                    break;
                }
                [[fallthrough]];
            case State::key:
                if (*at != '"') {
                    at = skip_blank(at);
                    break;
                }
                at = scan_key(at + 1, end);
                if (state_ != State::colon || at == end) break;
                [[fallthrough]];
            case State::colon:
                if (*at != ':') {
                    at = skip_blank(at);
                    break;
                }
                state_ = State::value;
                if (++at == end) break;
                [[fallthrough]];
            case State::value:
                at = scan_value(at, end);
                if (state_ != State::after_value || at == end) break;
                [[fallthrough]];
            case State::after_value:
                if (*at == ',' && !levels_.empty()) {
                    next_of(levels_.back());
                } else if (*at == '}' || *at == ']') {
                    close(*at == '}', false);
                } else {
                    at = skip_blank(at);
                    break;
                }
                ++at;
                break;
            case State::first_element:
                if (*at == ']') {
                    close(false, true);
                    ++at;
                } else if (is_blank(*at)) {
                    ++at;
                } else {
                    state_ = State::value;
                }
                break;
            default:
                return at;  // failed, or inside of a token
        }
    }
    return at;
}

/// Past a blank; nothing else may stand here.
const char* JsonSieve::skip_blank(const char* at) {
    if (!is_blank(*at)) fail();
    return at + 1;
}

/// at: behind the opening quote.
const char* JsonSieve::scan_key(const char* at, const char* const end) {
    const char* const special = find_string_special(at, end);
    if (special == end || *special != '"') {
        begin_string(true, between(at, special));
        return special;
    }
    end_key(between(at, special));
    return special + 1;
}

const char* JsonSieve::scan_value(const char* at, const char* const end) {
    switch (*at) {
        case '"':
            return scan_text(at + 1, end);
        case '{':
        case '[':
            open(*at == '{');
            return at + 1;
        case 't':
            return scan_literal("true", at, end);
        case 'f':
            return scan_literal("false", at, end);
        case 'n':
            return scan_literal("null", at, end);
        case 'N':
            return scan_literal("NaN", at, end);
        case 'I':
            return scan_literal("Infinity", at, end);
        default:
            return *at == '-' || is_digit(*at) ? scan_number(at, end) : skip_blank(at);
    }
}

/// at: behind the opening quote.
const char* JsonSieve::scan_text(const char* at, const char* const end) {
    const char* const special = find_string_special(at, end);
    if (special == end || *special != '"') {
        begin_string(false, between(at, special));
        return special;
    }
    if (keeps()) tree_.add_string(place_.mark, between(at, special));
    note_loose(at, special);
    state_ = State::after_value;
    return special + 1;
}

/// Where members are expected, of a string only whether it is empty is asked.
void JsonSieve::note_loose(const char* begin, const char* end) {
    if (!place_.kept) {
        loose_.add(LooseValue::Kind::ignored, begin - piece_, end - piece_);
    } else if (place_.schema && begin != end) {
        loose_.add(LooseValue::Kind::text, begin - piece_, end - piece_);
    }
}

const char* JsonSieve::scan_number(const char* at, const char* const end) {
    JsonNumber number;
    const char* const begin = at;
    at = number.scan(at, end);
    if (at == end || *at == 'I') {  // -Infinity
        unfinished_.pending = true;
        unfinished_.number = number;
        state_ = State::number;
    } else {
        if (!place_.kept) loose_.add(LooseValue::Kind::number, begin - piece_, at - piece_);
        end_number(number);
    }
    return at;
}

const char* JsonSieve::scan_literal(std::string_view literal, const char* at, const char* const end) {
    if (between(at, end).starts_with(literal)) {
        end_literal(literal.front());
        return at + literal.size();
    }
    unfinished_.pending = true;
    unfinished_.literal = literal;
    unfinished_.literal_at = 1;
    state_ = State::literal;
    return at + 1;
}

/// Is the value that begins now kept?
bool JsonSieve::keeps() {
    if (!place_.kept) return false;
    const bool room = levels_.empty() || tree_.has_room(levels_.back().in_array);
    overflowed_ = overflowed_ || !room;
    return room;
}

std::uint32_t JsonSieve::add(JsonType type, bool truthy) {
    return keeps() ? tree_.add(type, place_.mark, truthy) : JsonTree::k_none;
}

/// For a usual document at once, rather than piece by piece.
void JsonSieve::make_room() {
    levels_.reserve(k_usual_levels);
    tree_.make_room();
}

void JsonSieve::open(bool is_object) {
    if (levels_.size() >= k_max_depth) return fail();
    if (levels_.capacity() == 0) make_room();
    const bool in_array = !is_object || (!levels_.empty() && levels_.back().in_array);
    const bool counts = place_.counted && !is_object;
    place_.kept = place_.kept || counts;
    const std::uint32_t node = add(is_object ? JsonType::object : JsonType::array, false);
    // A list of lists at the top is an embedding, and nothing of it is asked for.
    const bool is_vector = !is_object && levels_.size() == 1 && !levels_.back().is_object;
    const JsonSchema* below = node == JsonTree::k_none || is_vector ? nullptr : place_.schema;
    levels_.push_back({below, node, is_object, in_array, counts});
    state_ = is_object ? State::first_key : State::first_element;
    if (!is_object) place_ = {below != nullptr, 0, below};
}

void JsonSieve::close(bool is_object, bool empty) {
    if (levels_.empty() || levels_.back().is_object != is_object) return fail();
    const Level& level = levels_.back();
    if (level.node != JsonTree::k_none) {
        tree_.close(level.node, !empty);
        if (level.counts)
            tree_.set_elements(level.node, {empty ? 0 : std::int64_t{level.commas} + 1, level.has_number});
    }
    levels_.pop_back();
    state_ = State::after_value;
}

/// After a comma.
void JsonSieve::next_of(Level& level) {
    if (level.is_object) {
        state_ = State::key;
        return;
    }
    place_ = {level.schema != nullptr, 0, level.schema};
    if (level.counts) ++level.commas;
    state_ = State::value;
}

void JsonSieve::end_key(std::string_view key) {
    const Level& level = levels_.back();
    const JsonSchema::Member* const member = level.schema ? level.schema->find(key) : nullptr;
    place_.kept = member && !member->counted;
    place_.counted = member && member->counted;
    if (member) {
        tree_.note_key(level.node, member->key);
        place_.mark = member->key.mark();
        place_.schema = member->schema;
    }
    state_ = State::colon;
}

void JsonSieve::end_number(const JsonNumber& number) {
    if (!number.complete()) return fail();
    if (!levels_.empty() && levels_.back().counts) levels_.back().has_number = true;
    const std::uint32_t node =
        add(number.is_integer() ? JsonType::integer : JsonType::number, !number.is_zero());
    if (node != JsonTree::k_none)
        if (const auto value = number.value()) tree_.set_integer(node, *value);
    state_ = State::after_value;
}

/// first: its first letter.
void JsonSieve::end_literal(char first) {
    if (first == 'n') {
        add(JsonType::null, false);
    } else if (first == 't' || first == 'f') {
        add(JsonType::boolean, first == 't');
    } else {
        add(JsonType::number, true);
    }
    state_ = State::after_value;
}

}  // namespace noren::metrics
