#include "tests/bench/load/text_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iomanip>
#include <ostream>

namespace load {

void TextTable::section(std::string title, std::vector<std::string> columns) {
    lines_.push_back({true, std::move(title), std::move(columns), {}});
}

void TextTable::row(std::string label, std::vector<std::string> cells, std::string note) {
    lines_.push_back({false, "  " + std::move(label), std::move(cells), std::move(note)});
}

void TextTable::print(std::ostream& out, std::size_t label_width) const {
    std::vector<std::size_t> widths;
    for (const Line& line : lines_) {
        label_width = std::max(label_width, line.label.size());
        if (widths.size() < line.cells.size()) widths.resize(line.cells.size(), 8);
        for (std::size_t i = 0; i < line.cells.size(); ++i)
            widths[i] = std::max(widths[i], line.cells[i].size());
    }
    for (const Line& line : lines_) {
        if (line.is_section) out << "\n";
        const bool bare = line.cells.empty() && line.note.empty();
        out << std::left << std::setw(bare ? 0 : static_cast<int>(label_width)) << line.label << std::right;
        for (std::size_t i = 0; i < line.cells.size(); ++i)
            out << "  " << std::setw(static_cast<int>(widths[i])) << line.cells[i];
        if (!line.note.empty()) out << "   " << line.note;
        out << "\n";
    }
}

std::string grouped(std::uint64_t number) {
    std::string text = std::to_string(number);
    for (std::size_t i = text.size(); i > 3; i -= 3)
        text.insert(i - 3, ",");
    return text;
}

std::string rounded(double value) {
    const double size = std::abs(value);
    if (size >= 999.5)
        return (value < 0 ? "-" : "") + grouped(static_cast<std::uint64_t>(std::llround(size)));
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f", size < 9.995 ? 2 : 1, value);
    return text.data();
}

std::string signed_rounded(double value) {
    const std::string text = rounded(value);
    if (text == "0.00" || text == "-0.00") return "0";
    return value > 0 ? "+" + text : text;
}

std::string rounded(const std::optional<double>& value) {
    return value ? rounded(*value) : "-";
}

}  // namespace load
