#include "config/units.hpp"

#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <system_error>

namespace noren::config {

namespace {

struct Unit {
    std::string_view name;
    std::uint64_t factor;
};

// Largest first: formatting takes the first that divides.
constexpr Unit k_durations[] = {{"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};
constexpr Unit k_sizes[] = {{"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"", 1}};

std::variant<std::uint64_t, UnitError> parse(std::string_view text, std::span<const Unit> units,
                                             std::uint64_t most) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    std::uint64_t number = 0;
    const auto [rest, error] = std::from_chars(begin, end, number);
    if (error == std::errc::invalid_argument) return UnitError::no_number;
    // `010` is eight to some YAML readers and ten to others.
    if (*begin == '0' && rest - begin > 1) return UnitError::no_number;
    if (error == std::errc::result_out_of_range) return UnitError::too_large;

    const std::string_view name(rest, static_cast<std::size_t>(end - rest));
    if (number == 0 && name.empty()) return std::uint64_t{0};
    for (const Unit& unit : units) {
        if (unit.name != name) continue;
        if (number > most / unit.factor) return UnitError::too_large;
        return number * unit.factor;
    }
    return name.empty() ? UnitError::no_unit : UnitError::unknown_unit;
}

std::string format(std::uint64_t amount, std::span<const Unit> units) {
    if (amount == 0) return "0";
    for (const Unit& unit : units) {
        if (amount % unit.factor == 0) return std::to_string(amount / unit.factor).append(unit.name);
    }
    return std::to_string(amount);
}

}  // namespace

std::variant<Duration, UnitError> parse_duration(std::string_view text) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max());
    const auto parsed = parse(text, k_durations, most);
    if (const auto* error = std::get_if<UnitError>(&parsed)) return *error;
    return Duration{static_cast<Duration::rep>(std::get<std::uint64_t>(parsed))};
}

std::variant<Bytes, UnitError> parse_size(std::string_view text) {
    return parse(text, k_sizes, std::numeric_limits<Bytes>::max());
}

std::string format_duration(Duration duration) {
    if (duration.count() < 0) return "-" + format_duration(-duration);
    return format(static_cast<std::uint64_t>(duration.count()), k_durations);
}

std::string format_size(Bytes size) {
    return format(size, k_sizes);
}

}  // namespace noren::config
