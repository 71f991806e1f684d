#include "tests/unit/metrics/scrape.hpp"

#include <stdexcept>

namespace noren::metrics::test {
namespace {

/// Takes name and labels off the front of text; the rest stays.
std::string take_series(std::string_view& text) {
    const auto malformed = [&] { return std::runtime_error("no series: " + std::string(text)); };
    const std::size_t name_end = text.find_first_of("{ ");
    std::string canonical(text.substr(0, name_end));
    text.remove_prefix(name_end == std::string_view::npos ? text.size() : name_end);
    if (text.empty() || text.front() != '{') return canonical;

    std::map<std::string, std::string> labels;
    text.remove_prefix(1);
    while (!text.empty() && text.front() != '}') {
        const std::size_t equals = text.find("=\"");
        if (equals == std::string_view::npos) throw malformed();
        const std::string label(text.substr(0, equals));
        std::size_t end = equals + 2;
        while (end < text.size() && text[end] != '"')
            end += text[end] == '\\' ? 2 : 1;
        if (end >= text.size()) throw malformed();
        if (!labels.emplace(label, text.substr(equals + 2, end - equals - 2)).second) throw malformed();
        text.remove_prefix(end + 1);
        if (!text.empty() && text.front() == ',') text.remove_prefix(1);
    }
    if (text.empty()) throw malformed();
    text.remove_prefix(1);
    canonical += '{';
    for (const auto& [label, value] : labels)
        canonical.append(label).append("=\"").append(value).append("\",");
    return canonical + '}';
}

std::string canonical(std::string_view series) {
    return take_series(series);
}

}  // namespace

Scrape::Scrape(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) throw std::runtime_error("last line without its end");
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (line.empty() || line.front() == '#') continue;
        const std::string series = take_series(line);
        if (line.empty() || line.front() != ' ') throw std::runtime_error("no value: " + series);
        if (!values_.emplace(series, std::stod(std::string(line))).second)
            throw std::runtime_error("twice: " + series);
    }
}

double Scrape::operator()(std::string_view series) const {
    const auto found = values_.find(canonical(series));
    if (found == values_.end()) throw std::runtime_error("not there: " + std::string(series));
    return found->second;
}

bool Scrape::has(std::string_view series) const {
    return values_.count(canonical(series)) > 0;
}

std::size_t Scrape::count(std::string_view name) const {
    std::size_t n = 0;
    for (const auto& [series, value] : values_)
        n += series.substr(0, series.find('{')) == name ? 1 : 0;
    return n;
}

}  // namespace noren::metrics::test
