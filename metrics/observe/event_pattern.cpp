#include "metrics/observe/event_pattern.hpp"

#include <cstring>
#include <limits>

#include "metrics/observe/byte_scan.hpp"
#include "metrics/observe/json_number.hpp"
#include "metrics/prefetch.hpp"

namespace noren::metrics {
namespace {

constexpr std::size_t k_max_document = 2048;

/// Where a string's content ends; null if that takes more than a glance.
const char* behind_text(const char* at, const char* end) {
    for (;;) {
        at = find_string_special(at, end);
        if (at == end || *at == '"') return at;
        if (*at != '\\' || end - at < 2 || !is_simple_escape(at[1])) return nullptr;
        at += 2;
    }
}

const char* behind_number(const char* at, const char* end) {
    // A whole number needs no more than a glance.
    const char* const digits_end = find_digits_end(at, end);
    if (at != digits_end && *at != '0' && digits_end != end && (*digits_end == ',' || *digits_end == '}'))
        return digits_end;
    JsonNumber number;
    at = number.scan(at, end);
    return number.complete() ? at : nullptr;
}

const char* behind(LooseValue::Kind kind, const char* at, const char* end) {
    if (kind == LooseValue::Kind::number) return behind_number(at, end);
    const char* const stop = behind_text(at, end);
    return stop == at && kind == LooseValue::Kind::text ? nullptr : stop;
}

}  // namespace

bool EventPattern::matches(std::string_view document) {
    if (!known_) return false;
    if (!fits(document)) {
        if (misses_ < std::numeric_limits<std::uint8_t>::max()) ++misses_;
        return false;
    }
    misses_ = fruitless_ = 0;
    return true;
}

bool EventPattern::fits(std::string_view document) const {
    const char* at = document.data();
    const char* const end = at + document.size();
    const char* fixed = fixed_.data();
    for (const Gap& gap : gaps_) {
        if (end - at <= gap.fixed || std::memcmp(at, fixed, gap.fixed) != 0) return false;
        fixed += gap.fixed;
        at = behind(gap.kind, at + gap.fixed, end);
        if (!at) return false;
    }
    const auto left = static_cast<std::size_t>(fixed_.data() + fixed_.size() - fixed);
    return static_cast<std::size_t>(end - at) == left && std::memcmp(at, fixed, left) == 0;
}

void EventPattern::learn(std::string_view document, std::span<const LooseValue> loose) {
    if (document.size() > k_max_document || loose.empty()) return;
    fixed_.clear();
    gaps_.clear();
    std::size_t at = 0;
    for (const LooseValue& value : loose) {
        const std::size_t fixed = value.begin - at;
        fixed_.append(document.substr(at, fixed));
        gaps_.push_back({static_cast<std::uint16_t>(fixed), value.kind});
        at = std::size_t{value.begin} + value.size;
    }
    fixed_.append(document.substr(at));
    known_ = true;
    misses_ = 0;
    ++fruitless_;
}

void EventPattern::prefetch() const noexcept {
    metrics::prefetch(fixed_.data(), fixed_.size());
    metrics::prefetch(gaps_.data(), gaps_.size() * sizeof(Gap));
}

}  // namespace noren::metrics
