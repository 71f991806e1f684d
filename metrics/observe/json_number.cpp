#include "metrics/observe/json_number.hpp"

#include <limits>

namespace noren::metrics {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

}  // namespace

void JsonNumber::begin(char c) {
    *this = JsonNumber();
    if (c == '-') {
        negative_ = true;
    } else {
        takes(c);
    }
}

const char* JsonNumber::scan(const char* at, const char* end) {
    while (at != end && takes(*at))
        ++at;
    return at;
}

/// Does c belong to the number? What does not ends it.
bool JsonNumber::takes(char c) {
    if (is_digit(c)) {
        switch (part_) {
            case Part::minus:
                part_ = c == '0' ? Part::zero : Part::integer;
                add_digit(c);
                return true;
            case Part::zero:  // no digit after a leading zero
                return false;
            case Part::integer:
                add_digit(c);
                return true;
            case Part::point:
            case Part::fraction:
                part_ = Part::fraction;
                zero_ = zero_ && c == '0';
                return true;
            case Part::e:
            case Part::e_sign:
            case Part::exponent:
                part_ = Part::exponent;
                return true;
        }
    }
    if (c == '.' && is_integer()) {
        part_ = Part::point;
    } else if ((c == 'e' || c == 'E') && (is_integer() || part_ == Part::fraction)) {
        part_ = Part::e;
    } else if ((c == '+' || c == '-') && part_ == Part::e) {
        part_ = Part::e_sign;
    } else {
        return false;
    }
    return true;
}

void JsonNumber::add_digit(char c) {
    zero_ = zero_ && c == '0';
    const auto digit = static_cast<std::uint64_t>(c - '0');
    too_big_ = too_big_ || magnitude_ > (std::numeric_limits<std::int64_t>::max() - digit) / 10;
    if (!too_big_) magnitude_ = magnitude_ * 10 + digit;
}

std::optional<std::int64_t> JsonNumber::value() const {
    if (!is_integer() || too_big_) return std::nullopt;
    const auto magnitude = static_cast<std::int64_t>(magnitude_);
    return negative_ ? -magnitude : magnitude;
}

}  // namespace noren::metrics
