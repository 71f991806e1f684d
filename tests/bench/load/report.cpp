#include "tests/bench/load/report.hpp"

#include <array>
#include <cstdio>
#include <iomanip>
#include <ostream>

#include <boost/json.hpp>

namespace load {
namespace {

namespace json = boost::json;

constexpr int k_name_width = 34;
constexpr int k_column_width = 16;

struct Column {
    std::string title;
    Summary summary;
};

std::vector<Column> columns_of(const Options& options, const Outcome& outcome) {
    std::vector<Column> columns;
    const std::size_t stages = options.rate > 0 ? 1 : options.stages.size();
    for (std::size_t stage = 0; stage < stages; ++stage) {
        for (std::size_t target = 0; target < options.urls.size(); ++target) {
            std::string title = options.urls.size() > 1 ? (target == 0 ? "A" : "B") : "";
            if (stages > 1)
                title += (title.empty() ? "" : " ") + std::to_string(options.stages[stage].connections) +
                         " clients";
            columns.push_back(
                {title.empty() ? "all" : title, summarise(outcome.results, [&](const Result& r) {
                     return r.target == target && r.stage == stage;
                 })});
        }
    }
    return columns;
}

std::string number(double value, const char* unit) {
    std::array<char, 48> text{};
    const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
    std::snprintf(text.data(), text.size(), "%.*f%s", decimals, value, unit);
    return text.data();
}

std::string milliseconds(double seconds) {
    return number(seconds * 1e3, " ms");
}

class Table {
  public:
    Table(std::ostream& out, const std::vector<Column>& columns) : out_(out), columns_(columns) {}

    template <typename Cell>
    void row(const std::string& name, Cell&& cell) {
        out_ << "  " << std::left << std::setw(k_name_width) << name << std::right;
        for (const Column& column : columns_)
            out_ << std::setw(k_column_width) << cell(column.summary);
        out_ << "\n";
    }

    void heading(const std::string& name) {
        out_ << "\n" << std::left << std::setw(k_name_width + 2) << name << std::right;
        for (const Column& column : columns_)
            out_ << std::setw(k_column_width) << column.title;
        out_ << "\n";
    }

    void quantiles(const std::string& name, Samples Summary::* samples, bool as_time) {
        for (const auto& [word, q] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}) {
            row(name + " " + word, [&, q = q](const Summary& summary) {
                const Samples& all = summary.*samples;
                if (all.empty()) return std::string("-");
                // The slow end of a speed is its low one.
                return as_time ? milliseconds(all.quantile(q)) : number(all.quantile(1 - q), "/s");
            });
        }
    }

  private:
    std::ostream& out_;
    const std::vector<Column>& columns_;
};

json::object quantiles_json(const Samples& samples) {
    return {{"count", samples.count()},     {"mean", samples.mean()},       {"min", samples.quantile(0)},
            {"p50", samples.quantile(0.5)}, {"p90", samples.quantile(0.9)}, {"p99", samples.quantile(0.99)},
            {"max", samples.quantile(1)}};
}

template <typename Key>
json::object counts_json(const std::map<Key, std::uint64_t>& counts) {
    json::object object;
    for (const auto& [key, count] : counts) {
        if constexpr (std::is_same_v<Key, int>) {
            object[std::to_string(key)] = count;
        } else {
            object[key] = count;
        }
    }
    return object;
}

std::int64_t nanoseconds(TimePoint t) {
    return t.time_since_epoch().count();
}

}  // namespace

void print_table(const Options& options, const Outcome& outcome, std::ostream& out) {
    const std::vector<Column> columns = columns_of(options, outcome);
    if (options.urls.size() > 1) {
        out << "  A = " << options.urls[0] << "\n  B = " << options.urls[1] << "\n";
    }
    Table table(out, columns);
    const auto count = [](std::uint64_t n) { return std::to_string(n); };
    table.heading("requests");
    table.row("sent", [&](const Summary& s) { return count(s.requests); });
    table.row("answered whole, every byte right", [&](const Summary& s) { return count(s.ok); });
    table.row("refused (429, 503)", [&](const Summary& s) { return count(s.refused); });
    table.row("failed", [&](const Summary& s) { return count(s.failed); });
    table.row("left by our client on purpose", [&](const Summary& s) { return count(s.left); });
    table.heading("throughput");
    table.row("requests per second", [](const Summary& s) { return number(s.requests_per_second(), ""); });
    table.row("output tokens per second", [](const Summary& s) { return number(s.tokens_per_second(), ""); });
    table.row("of them in whole answers",
              [](const Summary& s) { return number(s.good_tokens_per_second(), ""); });
    table.heading("time to first token (TTFT)");
    table.quantiles("TTFT", &Summary::ttft, true);
    table.heading("speed after it (TPS of one stream)");
    table.quantiles("TPS", &Summary::tps, false);
    table.quantiles("time per token", &Summary::tpot, true);
    table.heading("whole request");
    table.quantiles("end to end", &Summary::e2e, true);
    for (const Column& column : columns) {
        for (const auto& [kind, n] : column.summary.errors)
            out << "  error " << kind << ": " << n << " (" << column.title << ")\n";
        for (const auto& [reason, n] : column.summary.reasons)
            out << "  refused by noren, " << reason << ": " << n << " (" << column.title << ")\n";
    }
    if (outcome.missed > 0) out << "  arrivals missed, too many requests open: " << outcome.missed << "\n";
}

std::string to_json(const Options& options, const Outcome& outcome) {
    json::array runs;
    for (const Column& column : columns_of(options, outcome)) {
        const Summary& s = column.summary;
        runs.push_back(json::object{{"title", column.title},
                                    {"seconds", s.seconds},
                                    {"requests", s.requests},
                                    {"ok", s.ok},
                                    {"refused", s.refused},
                                    {"failed", s.failed},
                                    {"left", s.left},
                                    {"requests_per_second", s.requests_per_second()},
                                    {"output_tokens", s.tokens},
                                    {"output_tokens_per_second", s.tokens_per_second()},
                                    {"effective_tokens_per_second", s.good_tokens_per_second()},
                                    {"ttft_seconds", quantiles_json(s.ttft)},
                                    {"tpot_seconds", quantiles_json(s.tpot)},
                                    {"tps", quantiles_json(s.tps)},
                                    {"e2e_seconds", quantiles_json(s.e2e)},
                                    {"statuses", counts_json(s.statuses)},
                                    {"errors", counts_json(s.errors)},
                                    {"reasons", counts_json(s.reasons)}});
    }
    json::array urls;
    for (const std::string& url : options.urls)
        urls.emplace_back(url);
    return json::serialize(json::object{{"urls", urls}, {"missed", outcome.missed}, {"runs", runs}});
}

void write_per_request(const Outcome& outcome, std::ostream& out) {
    for (const Result& r : outcome.results) {
        json::object line{{"id", r.id},
                          {"target", r.target},
                          {"stage", r.stage},
                          {"status", r.status},
                          {"error", r.error},
                          {"left", r.left},
                          {"reason", r.reason},
                          {"events", r.events},
                          {"tokens", r.tokens},
                          {"body_bytes", r.body_bytes},
                          {"body_fnv", r.body_hash}};
        line["start_ns"] = nanoseconds(r.start);
        line["end_ns"] = nanoseconds(r.end);
        line["first_ns"] = r.first ? json::value(nanoseconds(*r.first)) : json::value(nullptr);
        line["last_ns"] = r.last ? json::value(nanoseconds(*r.last)) : json::value(nullptr);
        line["retry_after"] = r.retry_after ? json::value(*r.retry_after) : json::value(nullptr);
        out << json::serialize(line) << "\n";
    }
}

}  // namespace load
