#include <ostream>

#include <boost/json.hpp>

#include "tests/bench/load/report.hpp"

namespace load {
namespace {

namespace json = boost::json;

template <typename Distribution>
json::object distribution(const Distribution& values) {
    return {{"count", values.count()},      {"mean", values.mean()},        {"min", values.least()},
            {"p01", values.quantile(0.01)}, {"p10", values.quantile(0.1)},  {"p50", values.quantile(0.5)},
            {"p90", values.quantile(0.9)},  {"p99", values.quantile(0.99)}, {"max", values.most()}};
}

json::object counts(const std::map<std::string, std::uint64_t>& all) {
    json::object object;
    for (const auto& [key, count] : all)
        object[key] = count;
    return object;
}

json::object counts(const std::map<int, std::uint64_t>& all) {
    json::object object;
    for (const auto& [key, count] : all)
        object[std::to_string(key)] = count;
    return object;
}

json::array strings(const std::vector<std::string>& all) {
    json::array array;
    for (const std::string& one : all)
        array.emplace_back(one);
    return array;
}

json::object run_json(const Options& options, const Part& part) {
    const Summary& s = part.summary;
    return {{"label", options.labels[part.target]},
            {"url", options.urls[part.target]},
            {"stage", part.stage},
            {"connections", options.rate > 0 ? 0 : options.stages[part.stage].connections},
            {"seconds", s.seconds},
            {"requests", s.requests},
            {"ok", s.ok},
            {"checked", s.checked},
            {"body_checked", s.body_checked},
            {"refused", s.refused},
            {"failed", s.failed},
            {"left", s.left},
            {"slow", s.slow},
            {"retried", s.retried},
            {"requests_per_second", s.per_second(s.ok)},
            {"output_tokens", s.tokens},
            {"output_tokens_per_second", s.per_second(s.tokens)},
            {"effective_tokens_per_second", s.per_second(s.good_tokens)},
            {"body_bytes", s.body_bytes},
            {"bytes_altered", s.bytes_altered},
            {"bytes_lost", s.bytes_lost},
            {"bytes_extra", s.bytes_extra},
            {"ttft_seconds", distribution(s.ttft)},
            {"tpot_seconds", distribution(s.tpot)},
            {"itl_seconds", distribution(s.itl)},
            {"delay_seconds", distribution(s.delay)},
            {"tps", distribution(s.tps)},
            {"e2e_seconds", distribution(s.e2e)},
            {"retry_after_seconds", distribution(s.retry_after)},
            {"statuses", counts(s.statuses)},
            {"errors", counts(s.errors)},
            {"reasons", counts(s.reasons)}};
}

template <typename Value>
json::value or_null(const std::optional<Value>& value) {
    return value ? json::value(*value) : json::value(nullptr);
}

std::int64_t nanoseconds(TimePoint t) {
    return std::chrono::nanoseconds(t.time_since_epoch()).count();
}

std::optional<std::int64_t> nanoseconds(const std::optional<TimePoint>& t) {
    return t ? std::optional(nanoseconds(*t)) : std::nullopt;
}

json::object result_json(const Options& options, const Result& r) {
    const auto ttft = r.ttft(), tpot = r.tpot();
    return {{"id", r.id},
            {"label", options.labels[r.target]},
            {"target", r.target},
            {"stage", r.stage},
            {"status", r.status},
            {"ok", r.ok()},
            {"error", r.error},
            {"detail", r.detail},
            {"reason", r.reason},
            {"retry_after", or_null(r.retry_after)},
            {"left", r.left},
            {"slow", r.slow},
            {"retried", r.retried},
            {"checked", r.checked},
            {"body_checked", r.body_checked},
            {"events", r.events},
            {"tokens", r.tokens},
            {"body_bytes", r.body_bytes},
            {"body_fnv", r.body_hash},
            {"bytes_altered", r.bytes_altered},
            {"bytes_lost", r.bytes_lost},
            {"bytes_extra", r.bytes_extra},
            {"start_ns", nanoseconds(r.start)},
            {"first_ns", or_null(nanoseconds(r.first))},
            {"last_ns", or_null(nanoseconds(r.last))},
            {"end_ns", nanoseconds(r.end)},
            {"ttft_seconds", or_null(ttft)},
            {"tpot_seconds", or_null(tpot)},
            {"tps", tpot ? json::value(1 / *tpot) : json::value(nullptr)},
            {"e2e_seconds", r.e2e()}};
}

}  // namespace

std::string to_json(const Options& options, const Outcome& outcome) {
    json::array runs;
    for (const Part& part : parts_of(options, outcome))
        runs.push_back(run_json(options, part));
    return json::serialize(json::object{{"urls", strings(options.urls)},
                                        {"labels", strings(options.labels)},
                                        {"api", name_of(options.api)},
                                        {"stream", options.stream},
                                        {"seed", options.seed},
                                        {"missed", outcome.missed},
                                        {"interrupted", outcome.interrupted},
                                        {"lateness_seconds", distribution(outcome.lateness)},
                                        {"runs", std::move(runs)}});
}

void write_per_request(const Options& options, const Outcome& outcome, std::ostream& out) {
    for (const Result& result : outcome.results)
        out << json::serialize(result_json(options, result)) << "\n";
}

}  // namespace load
