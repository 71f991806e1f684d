#include "tests/bench/load/report.hpp"

#include <sstream>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/bench/load/text_table.hpp"

namespace {

using namespace load;
namespace json = boost::json;
using std::chrono::milliseconds;

const TimePoint k_start{std::chrono::seconds(1000)};

Result good(std::size_t target, std::size_t stage, int ttft_ms) {
    Result r;
    r.id = "load-1-0";
    r.target = target;
    r.stage = stage;
    r.status = 200;
    r.checked = r.body_checked = true;
    r.start = k_start;
    r.first = k_start + milliseconds(ttft_ms);
    r.last = *r.first + milliseconds(400);
    r.end = k_start + milliseconds(1000);
    r.events = r.tokens = 5;
    return r;
}

Options options_for(std::size_t urls, std::size_t stages) {
    Options options;
    options.urls = {"http://one", "http://two"};
    options.labels = {"direct", "noren"};
    options.urls.resize(urls);
    options.labels.resize(urls);
    options.stages.assign(stages, {4, milliseconds(1000)});
    return options;
}

Outcome outcome_of(const Options& options, std::vector<Result> results) {
    Outcome outcome;
    outcome.times.assign(options.stages.size(), std::vector<EventTimes>(options.urls.size()));
    outcome.times[0][0].gaps.add(100'000'000, 4);
    outcome.results = std::move(results);
    return outcome;
}

std::string table(const Options& options, const Outcome& outcome) {
    std::ostringstream out;
    print_table(options, outcome, out);
    return out.str();
}

}  // namespace

TEST_CASE("numbers for people") {
    CHECK(grouped(0) == "0");
    CHECK(grouped(999) == "999");
    CHECK(grouped(1000) == "1,000");
    CHECK(grouped(12'345'678) == "12,345,678");
    CHECK(rounded(0.0) == "0.00");
    CHECK(rounded(9.994) == "9.99");
    CHECK(rounded(9.996) == "10.0");
    CHECK(rounded(999.4) == "999.4");
    CHECK(rounded(999.6) == "1,000");
    CHECK(rounded(-1234.0) == "-1,234");
    CHECK(rounded(std::optional<double>()) == "-");
    CHECK(signed_rounded(0.001) == "0");
    CHECK(signed_rounded(-0.001) == "0");
    CHECK(signed_rounded(1.5) == "+1.50");
    CHECK(signed_rounded(-1.5) == "-1.50");
}

TEST_CASE("a text table aligns labels left and cells right") {
    TextTable text;
    text.section("Heading", {"a", "wide column"});
    text.row("x", {"1", "2"}, "note");
    text.row("longer", {"1,000"});
    std::ostringstream out;
    text.print(out, 10);
    CHECK(out.str() ==
          "\n"
          "Heading            a  wide column\n"
          "  x                1            2   note\n"
          "  longer       1,000\n");
}

TEST_CASE("the table of one url") {
    const Options options = options_for(1, 1);
    Result refused;
    refused.status = 429;
    refused.reason = "queue_full";
    refused.retry_after = 7;
    refused.start = refused.end = k_start;
    Result cut = good(0, 0, 100);
    cut.error = "cut";
    cut.detail = "closed by the server";
    const std::string text = table(options, outcome_of(options, {good(0, 0, 200), refused, cut}));
    for (const char* line :
         {"closed loop of 4 clients\n  to http://one\n",
          "  sent                                       3   in 1.00 s\n",
          "  answered whole                             1   33.3 %, 1.00 per second\n",
          "  refused (429, 503)                         1   queue_full 1; Retry-After 7 s\n",
          "  failed                                     1\n",
          "  time to first token (TTFT)             200.0     200.0",
          "  gap between token events (ITL)         100.0     100.0",
          "  after the first token (TPS)             10.0      10.0",
          "  cut                                        1    such as: closed by the server\n"}) {
        INFO(text);
        CHECK_THAT(text, Catch::Contains(line));
    }
    CHECK_THAT(text, !Catch::Contains("status 429"));  // told as refused, and nothing that went wrong
}

TEST_CASE("different times to wait are told as a range") {
    const Options options = options_for(1, 1);
    Result early;
    early.status = 503;
    early.retry_after = 2;
    early.start = early.end = k_start;
    Result late = early;
    late.retry_after = 30;
    CHECK_THAT(table(options, outcome_of(options, {early, late})),
               Catch::Contains("  refused (429, 503)                         2   Retry-After 2 to 30 s\n"));
}

TEST_CASE("a report says what was checked, and what was not") {
    const Options options = options_for(1, 1);
    const auto words = [&](Result other) {
        return table(options, outcome_of(options, {good(0, 0, 200), std::move(other)}));
    };
    Result result = good(0, 0, 100);
    CHECK_THAT(words(result),
               Catch::Contains("\nmarker, the generated text, each byte of the body (against the hash"));
    CHECK_THAT(words(result), Catch::Contains("  every byte of the body right             2\n"));
    result.body_checked = false;
    CHECK_THAT(words(result),
               Catch::Contains("\nmarker, the generated text; of 1 of 2 each byte of the body.\n"));
    result.checked = false;
    const std::string engine = table(options, outcome_of(options, {result}));
    CHECK_THAT(engine, Catch::Contains("\nmarker.\nNot each byte of the body"));
    CHECK_THAT(engine, Catch::Contains("as only a noren-sim sends it.\n"));
    CHECK_THAT(engine, !Catch::Contains("generated text"));
    CHECK_THAT(engine, Catch::Contains("  every byte of the body right             -\n"));
    result.error = "cut";
    CHECK_THAT(table(options, outcome_of(options, {result})), !Catch::Contains("Checked"));
}

TEST_CASE("two urls are told side by side with the difference, stages as columns") {
    const Options two = options_for(2, 1);
    const std::string text = table(two, outcome_of(two, {good(0, 0, 200), good(1, 0, 203)}));
    INFO(text);
    CHECK_THAT(text, Catch::Contains("direct: http://one\n  noren: http://two\n"));
    CHECK_THAT(text,
               Catch::Contains("  p50                                       200.0     203.0       +3.00\n"));
    CHECK_THAT(text,
               Catch::Contains("  output tokens                              5.00      5.00         0 %\n"));

    const Options stages = options_for(1, 3);
    const std::string columns =
        table(stages, outcome_of(stages, {good(0, 0, 100), good(0, 1, 200), good(0, 2, 300)}));
    INFO(columns);
    CHECK_THAT(columns, Catch::Contains("4 clients  4 clients  4 clients\n"));
    CHECK_THAT(columns, Catch::Contains("100.0      200.0      300.0\n"));
    CHECK_THAT(columns, !Catch::Contains("Refused") && !Catch::Contains("left by our client"));

    Result refused;
    refused.status = 503;
    refused.stage = 2;
    refused.reason = "draining";
    refused.start = refused.end = k_start;
    Result broken = refused;
    broken.status = 500;
    broken.reason = {};
    Result left = good(0, 1, 200);
    left.left = true;
    const std::string mixed = table(stages, outcome_of(stages, {good(0, 0, 100), left, refused, broken}));
    INFO(mixed);
    CHECK_THAT(mixed,
               Catch::Contains("\nRefused\n  at 4 clients                               1   draining 1\n"));
    CHECK_THAT(mixed,
               Catch::Contains(
                   "\nWhat went wrong\n  status 500                                 1   at 4 clients\n"));
    CHECK_THAT(mixed,
               Catch::Contains("  left by our client on purpose                  0          1          0\n"));
}

TEST_CASE("warnings of the open loop") {
    Options options = options_for(1, 1);
    options.rate = 50;
    Outcome outcome = outcome_of(options, {good(0, 0, 100)});
    CHECK_THAT(table(options, outcome), Catch::Contains("open loop at 50.0 requests per second"));
    outcome.missed = 3;
    outcome.lateness.add(0.02);
    CHECK_THAT(table(options, outcome),
               Catch::Contains("3 arrivals were missed") && Catch::Contains("20.0 ms late"));
}

TEST_CASE("the JSON has every documented name, once per url and stage") {
    const Options options = options_for(2, 2);
    const json::value report = json::parse(
        to_json(options, outcome_of(options, {good(0, 0, 100), good(1, 0, 200), good(1, 1, 300)})));
    for (const char* name :
         {"urls", "labels", "api", "stream", "seed", "missed", "interrupted", "lateness_seconds"})
        CHECK(report.as_object().contains(name));
    const json::array& runs = report.at("runs").as_array();
    REQUIRE(runs.size() == 4);
    for (const char* name : {"label",
                             "url",
                             "stage",
                             "connections",
                             "seconds",
                             "requests",
                             "ok",
                             "checked",
                             "refused",
                             "failed",
                             "left",
                             "slow",
                             "retried",
                             "requests_per_second",
                             "output_tokens",
                             "output_tokens_per_second",
                             "effective_tokens_per_second",
                             "body_bytes",
                             "bytes_altered",
                             "bytes_lost",
                             "bytes_extra",
                             "statuses",
                             "errors",
                             "reasons"})
        CHECK(runs[0].as_object().contains(name));
    for (const char* name :
         {"ttft_seconds", "tpot_seconds", "itl_seconds", "tps", "e2e_seconds", "retry_after_seconds"})
        for (const char* part : {"count", "mean", "min", "p01", "p10", "p50", "p90", "p99", "max"})
            CHECK(runs[0].at(name).as_object().contains(part));
    CHECK(runs[0].at("label").as_string() == "direct");
    CHECK(runs[1].at("ttft_seconds").at("p50").as_double() == Approx(0.2));
    CHECK(runs[2].at("requests").to_number<int>() == 0);
    CHECK(runs[3].at("stage").to_number<int>() == 1);
    CHECK(runs[3].at("statuses").at("200").to_number<int>() == 1);
}

TEST_CASE("a line per request, with nothing where there is nothing") {
    const Options options = options_for(1, 1);
    Result nothing;
    nothing.id = "load-1-1";
    nothing.error = "connect";
    nothing.start = nothing.end = k_start;
    std::ostringstream out;
    write_per_request(options, outcome_of(options, {good(0, 0, 100), nothing}), out);
    std::istringstream lines(out.str());
    std::string line;
    REQUIRE(std::getline(lines, line));
    const json::value first = json::parse(line);
    CHECK(first.at("start_ns").as_int64() == 1'000'000'000'000);
    CHECK(first.at("first_ns").as_int64() == 1'000'100'000'000);
    CHECK(first.at("tps").as_double() == Approx(10));
    CHECK(first.at("ok").as_bool());
    REQUIRE(std::getline(lines, line));
    const json::value second = json::parse(line);
    CHECK(second.at("error").as_string() == "connect");
    CHECK(second.at("first_ns").is_null());
    CHECK(second.at("tpot_seconds").is_null());
    CHECK_FALSE(std::getline(lines, line));
}
