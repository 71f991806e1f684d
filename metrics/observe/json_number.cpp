#include "metrics/observe/json_number.hpp"

#include <algorithm>
#include <limits>

#include "metrics/observe/byte_scan.hpp"

namespace noren::metrics {

const char* JsonNumber::scan(const char* at, const char* const end) {
    if (part_ == Part::start && at != end && *at == '-') {
        part_ = Part::minus;
        negative_ = true;
        ++at;
    }
    if (part_ <= Part::integer) at = scan_integer(at, end);
    if (is_integer() && at != end && *at == '.') {
        part_ = Part::point;
        ++at;
    }
    if (part_ == Part::point || part_ == Part::fraction) at = scan_fraction(at, end);
    if ((is_integer() || part_ == Part::fraction) && at != end && (*at == 'e' || *at == 'E')) {
        part_ = Part::e;
        ++at;
    }
    return part_ < Part::e ? at : scan_exponent(at, end);
}

const char* JsonNumber::scan_integer(const char* at, const char* const end) {
    if (at == end || !is_digit(*at) || part_ == Part::zero) return at;  // no digit after a leading zero
    if (part_ != Part::integer && *at == '0') {
        part_ = Part::zero;
        return at + 1;
    }
    part_ = Part::integer;
    zero_ = false;
    constexpr std::uint64_t k_most = std::numeric_limits<std::int64_t>::max();
    const char* const behind = find_digits_end(at, end);
    std::uint64_t magnitude = magnitude_;
    for (; at != behind; ++at) {
        const auto digit = static_cast<std::uint64_t>(*at - '0');
        if (magnitude >= k_most / 10) too_big_ = too_big_ || magnitude > (k_most - digit) / 10;
        magnitude = magnitude * 10 + digit;
    }
    magnitude_ = magnitude;
    return at;
}

const char* JsonNumber::scan_fraction(const char* at, const char* const end) {
    const char* const behind = find_digits_end(at, end);
    if (behind != at) part_ = Part::fraction;
    zero_ = zero_ && std::all_of(at, behind, [](char c) { return c == '0'; });
    return behind;
}

const char* JsonNumber::scan_exponent(const char* at, const char* const end) {
    if (part_ == Part::e && at != end && (*at == '+' || *at == '-')) {
        part_ = Part::e_sign;
        ++at;
    }
    const char* const behind = find_digits_end(at, end);
    if (behind != at) part_ = Part::exponent;
    return behind;
}

std::optional<std::int64_t> JsonNumber::value() const {
    if (!is_integer() || too_big_) return std::nullopt;
    const auto magnitude = static_cast<std::int64_t>(magnitude_);
    return negative_ ? -magnitude : magnitude;
}

}  // namespace noren::metrics
