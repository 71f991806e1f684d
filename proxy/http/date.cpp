#include "proxy/http/date.hpp"

#include <array>
#include <cstddef>

namespace noren::proxy::http {
namespace {

constexpr std::array<std::string_view, 7> k_days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> k_months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void append_digits(std::string& out, long number, std::size_t width) {
    const std::string digits = std::to_string(number);
    if (digits.size() < width) out.append(width - digits.size(), '0');
    out.append(digits);
}

}  // namespace

std::string imf_fixdate(std::chrono::sys_seconds at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(at - day);
    std::string out(k_days[std::chrono::weekday(day).c_encoding()]);
    append_digits(out.append(", "), static_cast<unsigned>(date.day()), 2);
    out.append(" ").append(k_months[static_cast<unsigned>(date.month()) - 1]);
    append_digits(out.append(" "), static_cast<int>(date.year()), 4);
    append_digits(out.append(" "), time.hours().count(), 2);
    append_digits(out.append(":"), time.minutes().count(), 2);
    append_digits(out.append(":"), time.seconds().count(), 2);
    return out.append(" GMT");
}

std::string_view DateClock::at(std::chrono::system_clock::time_point now) {
    const auto second = std::chrono::floor<std::chrono::seconds>(now);
    if (text_.empty() || second != second_) {
        second_ = second;
        text_ = imf_fixdate(second);
    }
    return text_;
}

}  // namespace noren::proxy::http
