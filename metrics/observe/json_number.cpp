#include "metrics/observe/json_number.hpp"

#include <algorithm>
#include <limits>

namespace noren::metrics {

const char* JsonNumber::scan(const char* at, const char* end) {
    while (at != end) {
        const char* const behind = digits(at, end);
        if (behind == at && !takes(*at)) break;
        at = behind == at ? at + 1 : behind;
    }
    return at;
}

/// Behind the digits at the front that belong to the number.
const char* JsonNumber::digits(const char* at, const char* end) {
    if (!is_digit(*at)) return at;
    switch (part_) {
        case Part::start:
        case Part::minus:
            part_ = *at == '0' ? Part::zero : Part::integer;
            return part_ == Part::zero ? at + 1 : integer_digits(at, end);
        case Part::zero:  // no digit after a leading zero
            return at;
        case Part::integer:
            return integer_digits(at, end);
        case Part::point:
        case Part::fraction:
            part_ = Part::fraction;
            return fraction_digits(at, end);
        case Part::e:
        case Part::e_sign:
        case Part::exponent:
            part_ = Part::exponent;
            return std::find_if_not(at, end, is_digit);
    }
    return at;
}

const char* JsonNumber::integer_digits(const char* at, const char* end) {
    constexpr std::uint64_t k_most = std::numeric_limits<std::int64_t>::max();
    std::uint64_t magnitude = magnitude_;
    for (; at != end && is_digit(*at); ++at) {
        const auto digit = static_cast<std::uint64_t>(*at - '0');
        if (magnitude >= k_most / 10) too_big_ = too_big_ || magnitude > (k_most - digit) / 10;
        magnitude = magnitude * 10 + digit;
    }
    magnitude_ = magnitude;
    zero_ = false;  // the first digit is none
    return at;
}

const char* JsonNumber::fraction_digits(const char* at, const char* end) {
    bool zero = zero_;
    for (; at != end && is_digit(*at); ++at)
        zero = zero && *at == '0';
    zero_ = zero;
    return at;
}

/// Does c, which is no digit, belong to the number?
bool JsonNumber::takes(char c) {
    if (c == '-' && part_ == Part::start) {
        part_ = Part::minus;
        negative_ = true;
    } else if (c == '.' && is_integer()) {
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

std::optional<std::int64_t> JsonNumber::value() const {
    if (!is_integer() || too_big_) return std::nullopt;
    const auto magnitude = static_cast<std::int64_t>(magnitude_);
    return negative_ ? -magnitude : magnitude;
}

}  // namespace noren::metrics
