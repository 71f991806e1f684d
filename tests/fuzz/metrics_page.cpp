// An engine's metrics page, of any bytes: what is read lies within it, what is merged is text format and
// nothing else, and what has been merged once brings nothing new a second time.

#include <string>

#include "metrics/engine/figures.hpp"
#include "metrics/engine/merged_page.hpp"
#include "metrics/engine/page_reader.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::metrics::engine;

namespace {

bool within(std::string_view part, std::string_view whole) {
    return part.empty() ||
           (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

void check_lines(std::string_view page) {
    PageReader reader(page);
    while (const auto line = reader.next()) {
        fuzz::expect(within(line->text, page), "a line lies within its page");
        for (const std::string_view part : {line->name, line->labels, line->value})
            fuzz::expect(within(part, line->text), "its parts lie within the line");
        if (line->kind != Line::Kind::sample) continue;
        LabelReader labels(line->labels);
        while (const auto label = labels.next())
            fuzz::expect(label_value(line->labels, label->name) == label->value, "a label has one value");
        fuzz::expect(labels.at_end(), "labels of a sample can be read");
    }
}

void check_figures(std::string_view page) {
    const Figures figures = read_figures(page);
    for (const auto& value : figures.values) {
        fuzz::expect(!value || *value >= 0, "no figure is negative or no number");
        fuzz::expect(!value || !figures.engine.empty(), "a figure is somebody's");
    }
    const auto& usage = figures[Figure::kv_cache_usage];
    fuzz::expect(!usage || *usage <= 1, "a ratio is at most 1");
}

void check_merged(std::string_view page, std::optional<double> queue) {
    const std::string own = "# TYPE noren_up gauge\nnoren_up 1\n";
    std::string merged = own;
    append_page(merged, page, queue);
    fuzz::expect(merged.starts_with(own), "noren's own page stays");
    PageReader reader(merged);
    while (const auto line = reader.next())
        fuzz::expect(line->kind == Line::Kind::sample || line->kind == Line::Kind::type ||
                         line->kind == Line::Kind::help,
                     "nothing but text format is appended");
    std::string again = merged;
    append_page(again, page, queue);
    fuzz::expect(again == merged, "a page that is there already brings nothing new");
    std::string fresh = own;
    append_page(fresh, std::string_view(merged).substr(own.size()), {});
    fuzz::expect(fresh == merged, "what was appended can be appended");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    const std::string_view page = input.rest();
    check_lines(page);
    check_figures(page);
    check_merged(page, choice % 2 == 0 ? std::optional<double>() : choice / 2);
    return 0;
}
