#include "tests/sim/fault.hpp"

#include <array>
#include <charconv>

namespace sim {

namespace {

struct Form {
    Fault::Kind kind;
    std::string_view name;
    char separator;           // '\0' = takes no number
    std::uint64_t otherwise;  // the number if it may be left out; k_needed = may not
};

constexpr std::uint64_t k_needed = ~std::uint64_t{0};

constexpr std::array<Form, 13> k_forms = {{
    {Fault::Kind::reset, "reset", '@', k_needed},
    {Fault::Kind::cut, "cut", '@', k_needed},
    {Fault::Kind::stall, "stall", '@', k_needed},
    {Fault::Kind::garbage, "garbage", '\0', 0},
    {Fault::Kind::early, "early", ':', k_needed},
    {Fault::Kind::slow_head, "slow-head", ':', k_needed},
    {Fault::Kind::bad_chunk, "bad-chunk", '\0', 0},
    {Fault::Kind::no_final_chunk, "no-final-chunk", '\0', 0},
    {Fault::Kind::error, "error", '@', k_needed},
    {Fault::Kind::close_before_head, "close-before-head", '\0', 0},
    {Fault::Kind::reset_before_head, "reset-before-head", '\0', 0},
    {Fault::Kind::huge_head, "huge-head", ':', 1U << 20U},
    {Fault::Kind::close_after, "close-after", '\0', 0},
}};

std::optional<std::uint64_t> number(std::string_view digits) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

bool in_range(const Fault& fault) {
    if (fault.is(Fault::Kind::early)) return fault.at >= 200 && fault.at <= 599;
    return !fault.is(Fault::Kind::huge_head) || fault.at <= 64U << 20U;
}

}  // namespace

std::optional<Fault> parse_fault(std::string_view text) {
    for (const Form& form : k_forms) {
        if (!text.starts_with(form.name)) continue;
        const std::string_view rest = text.substr(form.name.size());
        if (rest.empty()) {
            if (form.otherwise == k_needed) return std::nullopt;
            return Fault{form.kind, form.otherwise};
        }
        if (form.separator == '\0' || rest.front() != form.separator) continue;
        const auto value = number(rest.substr(1));
        if (!value) return std::nullopt;
        const Fault fault{form.kind, *value};
        return in_range(fault) ? std::optional(fault) : std::nullopt;
    }
    return std::nullopt;
}

std::string to_string(const Fault& fault) {
    for (const Form& form : k_forms) {
        if (form.kind != fault.kind) continue;
        std::string text(form.name);
        if (form.separator != '\0') text += form.separator + std::to_string(fault.at);
        return text;
    }
    return {};
}

std::string fault_forms() {
    std::string text;
    for (const Form& form : k_forms) {
        if (!text.empty()) text += ", ";
        text += form.name;
        if (form.separator == '\0') continue;
        text += form.otherwise == k_needed ? std::string{form.separator} + "N"
                                           : std::string("[") + form.separator + "N]";
    }
    return text;
}

}  // namespace sim
