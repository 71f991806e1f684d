#pragma once
// A metrics page in Prometheus text format (0.0.4), line by line. Sans-IO, allocates nothing, takes any
// bytes; everything found is a view of the page.

#include <optional>
#include <string>
#include <string_view>

namespace noren::metrics::engine {

struct Line {
    enum class Kind : unsigned char {
        sample,
        type,
        help,
        comment,    ///< or empty
        malformed,  ///< of no kind that a Prometheus would take
    };
    Kind kind = Kind::comment;
    std::string_view text;    ///< all of it, without blanks around it and without its end
    std::string_view name;    ///< sample: of the series; type, help: of the family
    std::string_view labels;  ///< sample: what stands between the braces
    std::string_view value;   ///< sample: as it is written; type: the word
    double number = 0;        ///< sample: what the value says
};

class PageReader {
  public:
    explicit PageReader(std::string_view page) : rest_(page) {}

    /// The next line; empty behind the last one.
    std::optional<Line> next();

  private:
    std::string_view rest_;
};

/// Walks the labels of a sample that PageReader has accepted.
class LabelReader {
  public:
    explicit LabelReader(std::string_view labels) : rest_(labels) {}

    struct Label {
        std::string_view name;
        std::string_view value;  ///< as it is written, between the quotes
    };
    /// Empty behind the last one, and where the text is not labels.
    std::optional<Label> next();
    /// True: next() has ended because there is nothing more, not because of what is there.
    bool at_end() const { return rest_.empty(); }

  private:
    std::string_view rest_;
};

/// The value of a label, as it is written; empty if there is none, which means the same.
std::string_view label_value(std::string_view labels, std::string_view name);

/// Numbers as they may stand in a page: decimal, Inf, NaN, any case.
std::optional<double> parse_number(std::string_view text);

}  // namespace noren::metrics::engine
