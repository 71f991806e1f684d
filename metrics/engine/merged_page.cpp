#include "metrics/engine/merged_page.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <unordered_set>
#include <utility>
#include <vector>

#include "metrics/engine/figures.hpp"
#include "metrics/engine/page_reader.hpp"

namespace noren::metrics::engine {
namespace {

/// A family's name and those of its series.
std::vector<std::string> names_of(std::string_view family, std::string_view type) {
    std::vector<std::string> names{std::string(family)};
    if (type == "histogram") names.push_back(names[0] + "_bucket");
    if (type == "histogram" || type == "summary") {
        names.push_back(names[0] + "_sum");
        names.push_back(names[0] + "_count");
    }
    return names;
}

using Names = std::unordered_set<std::string>;

Names names_on(std::string_view page) {
    Names names;
    PageReader reader(page);
    while (const auto line = reader.next()) {
        if (line->kind == Line::Kind::type) {
            for (std::string& name : names_of(line->name, line->value))
                names.insert(std::move(name));
        } else if (line->kind == Line::Kind::sample || line->kind == Line::Kind::help) {
            names.emplace(line->name);
        }
    }
    return names;
}

std::string to_text(double number) {
    std::array<char, 32> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
    return {text.data(), end};
}

/// Takes the engine's lines one after the other; knows which family they belong to.
class Appender {
  public:
    Appender(std::string& out, Names taken) : out_(out), taken_(std::move(taken)) {}

    void header(const Line& line) {
        if (line.name != family_) begin(line.name);
        const bool is_type = line.kind == Line::Kind::type;
        if (std::exchange(is_type ? has_type_ : has_help_, true) || (is_type && has_samples_)) return;
        // Also of a family that is left out: it says which series are its own.
        if (is_type) type_ = line.value;
        if (open_ && is_type) open_ = claim(line.name, line.value);
        if (!open_) return;
        // Not before it is known that the family is free: its type says which names it takes.
        header_.append(line.text).append("\n");
    }

    void sample(const Line& line, const std::optional<double>& instead) {
        if (!is_mine(line.name)) begin(line.name);
        if (open_ && type_.empty() && !has_samples_) open_ = claim(line.name, "untyped");
        if (!open_ || !is_complete(line)) return;
        out_.append(std::exchange(header_, {}));
        has_samples_ = true;
        if (instead) {
            const auto before = static_cast<std::size_t>(line.value.data() - line.text.data());
            out_.append(line.text.substr(0, before)).append(to_text(*instead));
            out_.append(line.text.substr(before + line.value.size()));
        } else {
            out_.append(line.text);
        }
        out_.append("\n");
    }

  private:
    void begin(std::string_view family) {
        family_ = family;
        type_ = {};
        header_.clear();
        has_type_ = has_help_ = has_samples_ = false;
        open_ = !taken_.contains(std::string(family));
    }

    bool claim(std::string_view family, std::string_view type) {
        std::vector<std::string> names = names_of(family, type);
        for (const std::string& name : names)
            if (taken_.contains(name)) return false;
        for (std::string& name : names)
            taken_.insert(std::move(name));
        return true;
    }

    bool is_mine(std::string_view series) const {
        if (series == family_) return true;
        if (!series.starts_with(family_)) return false;
        const std::string_view suffix = series.substr(family_.size());
        const bool total = suffix == "_sum" || suffix == "_count";
        return (type_ == "histogram" && (total || suffix == "_bucket")) || (type_ == "summary" && total);
    }

    /// A histogram has no series of its own name; bounds and quantiles are numbers.
    bool is_complete(const Line& line) const {
        if (type_ == "histogram") {
            if (line.name == family_) return false;
            if (line.name.ends_with("_bucket"))
                return parse_number(label_value(line.labels, "le")).has_value();
        }
        if (type_ == "summary" && line.name == family_)
            return parse_number(label_value(line.labels, "quantile")).has_value();
        return true;
    }

    std::string& out_;
    Names taken_;
    std::string_view family_, type_;
    std::string header_;  ///< of the family, until its first sample
    bool open_ = false;   ///< the family's lines are taken
    bool has_type_ = false, has_help_ = false, has_samples_ = false;
};

}  // namespace

void append_page(std::string& own, std::string_view page, std::optional<double> add_to_waiting) {
    const std::string_view engine = add_to_waiting ? read_figures(page).engine : std::string_view();
    Appender appender(own, names_on(own));
    PageReader reader(page);
    while (const auto line = reader.next()) {
        if (line->kind == Line::Kind::type || line->kind == Line::Kind::help) appender.header(*line);
        if (line->kind != Line::Kind::sample) continue;
        std::optional<double> instead;
        if (add_to_waiting && std::isfinite(line->number) && tells(*line, engine, Figure::queued)) {
            instead = line->number + *add_to_waiting;
            add_to_waiting.reset();
        }
        appender.sample(*line, instead);
    }
}

}  // namespace noren::metrics::engine
