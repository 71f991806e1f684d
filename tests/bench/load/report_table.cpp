#include <algorithm>
#include <functional>
#include <ostream>

#include "tests/bench/load/report.hpp"
#include "tests/bench/load/text_table.hpp"

namespace load {
namespace {

constexpr std::size_t k_label_width = 36;
constexpr std::size_t k_columns_side_by_side = 6;

using Number = std::function<std::optional<double>(const Summary&)>;
enum class Difference { absolute, percent };

std::string percent(std::uint64_t part, std::uint64_t whole) {
    return whole == 0
               ? std::string()
               : (part == whole ? "100"
                                : rounded(100 * static_cast<double>(part) / static_cast<double>(whole))) +
                     " %";
}

template <typename Distribution>
std::vector<std::string> spread(const Distribution& values, double scale) {
    if (values.count() == 0) return {"-", "-", "-", "-", "-", "-"};
    std::vector<std::string> cells = {rounded(values.least() * scale), rounded(values.mean() * scale)};
    for (const double q : {0.5, 0.9, 0.99})
        cells.push_back(rounded(values.quantile(q) * scale));
    cells.push_back(rounded(values.most() * scale));
    return cells;
}

/// A speed's bad end is the low one: p99 is what 99 % of the streams reached.
std::vector<std::string> spread_of_speed(const Samples& values) {
    if (values.empty()) return {"-", "-", "-", "-", "-", "-"};
    return {rounded(values.most()),        rounded(values.mean()),         rounded(values.quantile(0.5)),
            rounded(values.quantile(0.1)), rounded(values.quantile(0.01)), rounded(values.least())};
}

std::string list(const std::map<std::string, std::uint64_t>& counts) {
    std::string text;
    for (const auto& [name, count] : counts)
        text += (text.empty() ? "" : ", ") + name + " " + grouped(count);
    return text;
}

std::string about_refusals(const Summary& s) {
    std::string text = list(s.reasons);
    if (s.retry_after.empty()) return text;
    const std::string least = grouped(static_cast<std::uint64_t>(s.retry_after.least()));
    const std::string most = grouped(static_cast<std::uint64_t>(s.retry_after.most()));
    text += (text.empty() ? "Retry-After " : "; Retry-After ") + least;
    return text + (least == most ? " s" : " to " + most + " s");
}

/// Where no body could be checked, a 0 would read as if all of them were wrong; those are among the failed.
std::string told_checked(const Summary& s) {
    return s.body_checked == 0 && s.ok > 0 ? "-" : grouped(s.body_checked);
}

/// One url, one stage: every figure with its whole spread.
void print_one(const Summary& s, std::ostream& out) {
    TextTable counts;
    counts.section("Requests");
    counts.row("sent", {grouped(s.requests)}, "in " + rounded(s.seconds) + " s");
    counts.row("answered whole", {grouped(s.ok)},
               percent(s.ok, s.requests) + ", " + rounded(s.per_second(s.ok)) + " per second");
    counts.row("  every byte of the body right", {told_checked(s)});
    counts.row("refused (429, 503)", {grouped(s.refused)}, about_refusals(s));
    counts.row("failed", {grouped(s.failed)});
    if (s.left > 0) counts.row("left by our client on purpose", {grouped(s.left)});
    if (s.slow > 0) counts.row("read slowly on purpose", {grouped(s.slow)}, "not in the latencies below");
    counts.section("Throughput");
    counts.row("output tokens per second", {rounded(s.per_second(s.tokens))});
    counts.row("  of answers that were whole", {rounded(s.per_second(s.good_tokens))});
    counts.print(out, k_label_width);

    TextTable spreads;
    spreads.section("Latency (ms)", {"min", "mean", "p50", "p90", "p99", "max"});
    spreads.row("time to first token (TTFT)", spread(s.ttft, 1e3));
    spreads.row("time per output token (TPOT)", spread(s.tpot, 1e3));
    spreads.row("gap between token events (ITL)", spread(s.itl, 1e3));
    if (s.delay.count() > 0) spreads.row("delay from the engine's write", spread(s.delay, 1e3));
    spreads.row("whole request", spread(s.e2e, 1e3));
    spreads.section("Speed of one stream (tokens per s)", {"best", "mean", "p50", "p90", "p99", "worst"});
    spreads.row("after the first token (TPS)", spread_of_speed(s.tps));
    spreads.print(out, k_label_width);
}

/// Several parts side by side; of two urls also the second minus the first.
class Comparison {
  public:
    Comparison(std::vector<const Part*> parts, std::vector<std::string> titles, bool differences)
        : parts_(std::move(parts)), titles_(std::move(titles)), differences_(differences) {
        if (differences_) titles_.emplace_back("difference");
    }

    void section(const std::string& title) { table_.section(title, titles_); }

    /// A row that few have is left out if it is 0 for all.
    void count_if_any(const std::string& label, std::uint64_t Summary::* member) {
        if (std::any_of(parts_.begin(), parts_.end(),
                        [&](const Part* part) { return part->summary.*member > 0; }))
            count(label, member);
    }

    template <typename Told>
    void cells(const std::string& label, const Told& told) {
        std::vector<std::string> cells;
        for (const Part* part : parts_)
            cells.push_back(told(part->summary));
        table_.row(label, std::move(cells));
    }

    void count(const std::string& label, std::uint64_t Summary::* member) {
        cells(label, [member](const Summary& s) { return grouped(s.*member); });
    }

    void row(const std::string& label, const Number& number, Difference difference) {
        std::vector<std::string> cells;
        for (const Part* part : parts_)
            cells.push_back(rounded(number(part->summary)));
        if (differences_)
            cells.push_back(told(number(parts_[0]->summary), number(parts_[1]->summary), difference));
        table_.row(label, std::move(cells));
    }

    template <typename Distribution>
    void spread(Distribution Summary::* member) {
        const auto in_ms = [member](auto&& figure) {
            return [member, figure](const Summary& s) -> std::optional<double> {
                if ((s.*member).count() == 0) return std::nullopt;
                return figure(s.*member) * 1e3;
            };
        };
        row("mean", in_ms([](const Distribution& d) { return d.mean(); }), Difference::absolute);
        for (const auto& [name, q] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}})
            row(name, in_ms([quantile = q](const Distribution& d) { return d.quantile(quantile); }),
                Difference::absolute);
    }

    void print(std::ostream& out) const { table_.print(out, k_label_width); }

  private:
    static std::string told(std::optional<double> a, std::optional<double> b, Difference difference) {
        if (!a || !b) return "-";
        if (difference == Difference::absolute) return signed_rounded(*b - *a);
        return *a > 0 ? signed_rounded(100 * (*b - *a) / *a) + " %" : "-";
    }

    std::vector<const Part*> parts_;
    std::vector<std::string> titles_;
    bool differences_;
    TextTable table_;
};

void print_side_by_side(Comparison table, std::ostream& out) {
    table.section("Requests");
    table.count("sent", &Summary::requests);
    table.count("answered whole", &Summary::ok);
    table.cells("  every byte of the body right", told_checked);
    table.count("refused (429, 503)", &Summary::refused);
    table.count("failed", &Summary::failed);
    table.count_if_any("left by our client on purpose", &Summary::left);
    table.section("Throughput (per second)");
    table.row("answers", [](const Summary& s) { return s.per_second(s.ok); }, Difference::percent);
    table.row("output tokens", [](const Summary& s) { return s.per_second(s.tokens); }, Difference::percent);
    table.row(
        "  of answers that were whole", [](const Summary& s) { return s.per_second(s.good_tokens); },
        Difference::percent);
    table.section("Time to first token, TTFT (ms)");
    table.spread(&Summary::ttft);
    table.section("Gap between token events, ITL (ms)");
    table.spread(&Summary::itl);
    table.section("Speed of one stream, TPS (tokens per s)");
    for (const auto& [name, q] :
         {std::pair{"p50", 0.5}, {"p90 (reached by 90 %)", 0.9}, {"p99 (reached by 99 %)", 0.99}})
        table.row(
            name,
            [quantile = 1 - q](const Summary& s) {
                return s.tps.empty() ? std::nullopt : std::optional(s.tps.quantile(quantile));
            },
            Difference::percent);
    table.section("Whole request (ms)");
    table.spread(&Summary::e2e);
    table.print(out);
}

std::string clients(const Stage& stage) {
    return grouped(stage.connections) + (stage.connections == 1 ? " client" : " clients");
}

void print_heading(const Options& options, const Outcome& outcome, std::ostream& out) {
    out << "noren-load: " << name_of(options.api) << (options.stream ? ", streamed, " : ", not streamed, ");
    if (options.rate > 0) {
        out << "open loop at " << rounded(options.rate) << " requests per second";
    } else if (options.stages.size() > 1) {
        out << "closed loop in " << options.stages.size() << " stages";
    } else {
        out << "closed loop of " << clients(options.stages.front());
    }
    out << (outcome.interrupted ? " (interrupted)\n" : "\n");
    if (options.urls.size() == 1) {
        out << "  to " << options.urls.front() << "\n";
        return;
    }
    for (std::size_t i = 0; i < options.urls.size(); ++i)
        out << "  " << options.labels[i] << ": " << options.urls[i] << "\n";
    out << "  each request went to both in turn, so the two share the clients' time and the throughput\n";
}

/// Of one among several.
std::string title(const Options& options, const Part& part) {
    std::string text;
    if (options.urls.size() > 1) text += options.labels[part.target] + " ";
    if (options.stages.size() > 1) text += "at " + clients(options.stages[part.stage]);
    return text;
}

/// Why; the columns of several parts have no room for it.
void print_refusals(const Options& options, const std::vector<Part>& parts, std::ostream& out) {
    TextTable table;
    bool any = false;
    for (const Part& part : parts) {
        if (parts.size() == 1 || part.summary.refused == 0) continue;
        if (!any) table.section("Refused");
        any = true;
        table.row(title(options, part), {grouped(part.summary.refused)}, about_refusals(part.summary));
    }
    if (any) table.print(out, k_label_width);
}

void print_failures(const Options& options, const std::vector<Part>& parts, std::ostream& out) {
    TextTable table;
    bool any = false;
    const auto add = [&](const std::string& what, std::uint64_t n, const std::string& note) {
        if (!any) table.section("What went wrong");
        any = true;
        table.row(what, {grouped(n)}, note);
    };
    for (const Part& part : parts) {
        for (const auto& [kind, n] : part.summary.errors) {
            const std::string& detail = part.summary.details.at(kind);
            add(kind, n, title(options, part) + (detail.empty() ? "" : " such as: " + detail));
        }
        for (const auto& [status, n] : part.summary.statuses)
            if (status >= 300 && status != 429 && status != 503)
                add("status " + std::to_string(status), n, title(options, part));
    }
    if (any) table.print(out, k_label_width);
}

/// "Answered whole" says no more than what was looked at.
void print_checks(const std::vector<Part>& parts, std::ostream& out) {
    std::uint64_t ok = 0, text = 0, body = 0;
    for (const Part& part : parts) {
        ok += part.summary.ok;
        text += part.summary.checked;
        body += part.summary.body_checked;
    }
    if (ok == 0) return;
    out << "\nChecked of every whole answer: HTTP framing, that each event is JSON and none an error, the "
           "API's end\n"
           "marker";
    if (text == ok) out << ", the generated text";
    if (body == ok) {
        out << ", each byte of the body (against the hash that the simulated engine told of it).\n";
    } else if (body > 0) {
        out << "; of " << grouped(body) << " of " << grouped(ok) << " each byte of the body.\n";
    } else {
        out << ".\nNot each byte of the body: no hash of it came with the answers"
            << (text == 0 ? ", as only a noren-sim sends it.\n" : ".\n");
    }
}

void print_warnings(const Outcome& outcome, std::ostream& out) {
    if (outcome.missed > 0)
        out << "\n"
            << grouped(outcome.missed) << " arrivals were missed: too many requests were open (--max-open)\n";
    const double late = outcome.lateness.quantile(0.99);
    if (late > 0.005)
        out << "\nThis tool was " << rounded(late * 1e3)
            << " ms late with 1 % of its arrivals: its machine is too busy for this rate\n";
}

}  // namespace

std::vector<Part> parts_of(const Options& options, const Outcome& outcome) {
    std::vector<Part> parts;
    for (std::size_t stage = 0; stage < options.stages.size(); ++stage) {
        for (std::size_t target = 0; target < options.urls.size(); ++target) {
            std::vector<const Result*> results;
            for (const Result& result : outcome.results)
                if (result.stage == stage && result.target == target) results.push_back(&result);
            Part part{stage, target, summarise(results)};
            part.summary.itl = outcome.times[stage][target].gaps;
            part.summary.delay = outcome.times[stage][target].delays;
            parts.push_back(std::move(part));
        }
    }
    return parts;
}

void print_table(const Options& options, const Outcome& outcome, std::ostream& out) {
    const std::vector<Part> parts = parts_of(options, outcome);
    const bool two = options.urls.size() == 2;
    print_heading(options, outcome, out);
    if (parts.size() == 1) print_one(parts.front().summary, out);
    const std::size_t step = two ? 2 : k_columns_side_by_side;
    for (std::size_t from = 0; parts.size() > 1 && from < parts.size(); from += step) {
        std::vector<const Part*> shown;
        std::vector<std::string> titles;
        for (std::size_t i = from; i < std::min(parts.size(), from + step); ++i) {
            shown.push_back(&parts[i]);
            titles.push_back(two ? options.labels[parts[i].target] : clients(options.stages[parts[i].stage]));
        }
        if (two && options.stages.size() > 1)
            out << "\n== " << clients(options.stages[shown[0]->stage]) << "\n";
        print_side_by_side(Comparison(std::move(shown), std::move(titles), two), out);
    }
    print_refusals(options, parts, out);
    print_failures(options, parts, out);
    print_checks(parts, out);
    print_warnings(outcome, out);
}

}  // namespace load
