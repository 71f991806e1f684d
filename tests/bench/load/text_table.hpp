#pragma once
// Aligned text for people: a label, right-aligned cells, a note.

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace load {

class TextTable {
  public:
    /// A line in front of the rows that follow, with column titles.
    void section(std::string title, std::vector<std::string> columns = {});
    void row(std::string label, std::vector<std::string> cells, std::string note = {});
    /// Columns are as wide as their widest cell, labels at least `label_width`.
    void print(std::ostream& out, std::size_t label_width) const;

  private:
    struct Line {
        bool is_section = false;
        std::string label;
        std::vector<std::string> cells;
        std::string note;
    };
    std::vector<Line> lines_;
};

/// 1234567 -> "1,234,567".
std::string grouped(std::uint64_t number);
/// About three digits, at most two of them decimals: "0.50", "12.3", "1,234".
std::string rounded(double value);
/// With its sign, "0" if it rounds to nothing.
std::string signed_rounded(double value);
/// "-" for none.
std::string rounded(const std::optional<double>& value);

}  // namespace load
