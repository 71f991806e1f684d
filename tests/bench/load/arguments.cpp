#include "tests/bench/load/arguments.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace load {
namespace {

[[noreturn]] void complain(const std::string& expected, const std::string& found) {
    throw std::invalid_argument("expected " + expected + ", found \"" + found + "\"");
}

template <typename Number>
bool parse_all(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Range parse_range(const std::string& text) {
    Range range;
    const std::size_t colon = text.find(':');
    const std::string_view least = std::string_view(text).substr(0, colon);
    const std::string_view most =
        colon == std::string::npos ? least : std::string_view(text).substr(colon + 1);
    if (!parse_all(least, range.least) || !parse_all(most, range.most) || range.least < 1 ||
        range.most < range.least)
        complain("a number or LEAST:MOST, at least 1", text);
    return range;
}

std::chrono::milliseconds parse_duration(const std::string& text) {
    constexpr std::array<std::pair<std::string_view, double>, 4> k_units = {
        {{"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"h", 3.6e6}}};
    constexpr double k_most = 1e12;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto known =
        std::find_if(k_units.begin(), k_units.end(), [&](const auto& u) { return u.first == unit; });
    if (error != std::errc() || known == k_units.end() || !(value >= 0) || value * known->second > k_most)
        complain("a time such as 250ms, 10s or 2m", text);
    return std::chrono::milliseconds(std::llround(value * known->second));
}

std::vector<Stage> parse_stages(const std::string& text) {
    std::vector<Stage> stages;
    std::istringstream in(text);
    for (std::string part; std::getline(in, part, ',');) {
        const std::size_t colon = part.find(':');
        Stage stage;
        if (colon == std::string::npos ||
            !parse_all(std::string_view(part).substr(0, colon), stage.connections) || stage.connections == 0)
            complain("CLIENTS:TIME,CLIENTS:TIME,...", text);
        stage.duration = parse_duration(part.substr(colon + 1));
        if (stage.duration.count() == 0) complain("a time above 0 in each stage", text);
        stages.push_back(stage);
    }
    if (stages.empty()) complain("CLIENTS:TIME,CLIENTS:TIME,...", text);
    return stages;
}

std::string parse_header(const std::string& text) {
    constexpr std::array<std::string_view, 6> k_ours = {"host",         "content-type",      "content-length",
                                                        "x-request-id", "transfer-encoding", "connection"};
    const std::size_t colon = text.find(':');
    std::string name = text.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    if (colon == std::string::npos || name.empty() || name.find_first_of(" \t") != std::string::npos ||
        text.find_first_of("\r\n") != std::string::npos)
        complain("\"Name: value\"", text);
    if (std::find(k_ours.begin(), k_ours.end(), name) != k_ours.end())
        complain("a header that noren-load does not set itself", text);
    return text;
}

}  // namespace load
