#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/bench/load/histogram.hpp"
#include "tests/bench/load/summary.hpp"

namespace {

using namespace load;
using std::chrono::milliseconds;

const TimePoint k_start{std::chrono::seconds(1000)};

/// 5 tokens between 100 ms and 300 ms, over at 310 ms.
Result good(int shift_ms = 0) {
    Result r;
    r.status = 200;
    r.start = k_start + milliseconds(shift_ms);
    r.first = r.start + milliseconds(100);
    r.last = r.start + milliseconds(300);
    r.end = r.start + milliseconds(310);
    r.events = r.tokens = 5;
    r.body_bytes = 50;
    r.checked = true;
    return r;
}

Summary summary_of(const std::vector<Result>& results) {
    std::vector<const Result*> all;
    for (const Result& result : results)
        all.push_back(&result);
    return summarise(all);
}

}  // namespace

TEST_CASE("TTFT, TPOT and TPS by hand") {
    Result r = good();
    CHECK(r.ttft().value() == Approx(0.1));
    CHECK(r.tpot().value() == Approx(0.05));  // 200 ms, 4 intervals
    CHECK(r.e2e() == Approx(0.31));
    const Summary sum = summary_of({r});
    CHECK(sum.tps.quantile(0.5) == Approx(20));
    r.tokens = 1;
    CHECK_FALSE(r.tpot());
    r = good();
    r.last = r.first;
    CHECK_FALSE(r.tpot());
    r.first.reset();
    CHECK_FALSE(r.ttft());
    CHECK_FALSE(r.tpot());
}

TEST_CASE("what counts as what") {
    Result refused;
    refused.status = 429;
    refused.reason = "queue_full";
    refused.retry_after = 3;
    refused.start = k_start;
    refused.end = k_start + milliseconds(1);
    Result broken = refused;
    broken.status = 500;
    broken.reason.clear();
    Result cut = good();
    cut.error = "cut";
    cut.detail = "closed by the server";
    cut.tokens = 3;
    Result left = good();
    left.left = true;
    Result slow = good();
    slow.slow = true;
    slow.end = k_start + milliseconds(5000);
    const Summary sum = summary_of({good(), good(690), refused, broken, cut, left, slow});
    CHECK(sum.requests == 7);
    CHECK(sum.ok == 3);
    CHECK(sum.refused == 1);
    CHECK(sum.failed == 2);
    CHECK(sum.left == 1);
    CHECK(sum.slow == 1);
    CHECK(sum.tokens == 5 * 4 + 3);
    CHECK(sum.good_tokens == 15);
    CHECK(sum.seconds == Approx(5.0));
    CHECK(sum.per_second(sum.good_tokens) == Approx(3.0));
    CHECK(sum.ttft.count() == 2);  // the slow reader's are its own
    CHECK(sum.e2e.most() == Approx(0.31));
    CHECK(sum.statuses == std::map<int, std::uint64_t>{{200, 5}, {429, 1}, {500, 1}});
    CHECK(sum.errors == std::map<std::string, std::uint64_t>{{"cut", 1}});
    CHECK(sum.details.at("cut") == "closed by the server");
    CHECK(sum.reasons.at("queue_full") == 1);
    CHECK(sum.retry_after.count() == 1);
    CHECK(summary_of({}).per_second(5) == 0);
}

TEST_CASE("quantiles by nearest rank") {
    Samples samples;
    CHECK(samples.quantile(0.5) == 0);
    CHECK(samples.mean() == 0);
    for (const double value : {5.0, 1.0, 3.0, 2.0, 4.0})
        samples.add(value);
    CHECK(samples.least() == 1);
    CHECK(samples.quantile(0.5) == 3);
    CHECK(samples.quantile(0.2) == 1);
    CHECK(samples.quantile(0.21) == 2);
    CHECK(samples.most() == 5);
    samples.add(0.5);  // after sorting
    CHECK(samples.least() == 0.5);
    CHECK(samples.mean() == Approx(15.5 / 6));
}

TEST_CASE("a histogram's quantiles are within 0.4 % of the exact ones, whatever the magnitude") {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<> exponent(0, 38);
    Histogram histogram;
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 20'000; ++i) {
        values.push_back(static_cast<std::uint64_t>(std::exp2(exponent(random))));
        histogram.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (double q = 0.0005; q <= 1; q += 0.0005) {
        const double exact =
            static_cast<double>(values[static_cast<std::size_t>(std::max(1.0, std::ceil(q * 20'000))) - 1]);
        REQUIRE(histogram.quantile(q) * 1e9 == Approx(exact).epsilon(0.004));
    }
    CHECK(histogram.least() * 1e9 == Approx(static_cast<double>(values.front())));
    CHECK(histogram.most() * 1e9 == Approx(static_cast<double>(values.back())));
}

TEST_CASE("a histogram at its edges") {
    Histogram empty;
    CHECK(empty.quantile(0.5) == 0);
    CHECK(empty.least() == 0);
    Histogram one;
    one.add(0, 0);
    CHECK(one.count() == 0);
    one.add(1'000'000, 3);
    one.add(4'000'000);
    CHECK(one.count() == 4);
    CHECK(one.mean() == Approx(0.00175));
    Histogram other;
    other.add(UINT64_MAX / 2);
    other.add(0);
    one.merge(other);
    CHECK(one.count() == 6);
    CHECK(one.least() == 0);
    CHECK(one.quantile(0.5) == Approx(0.001).epsilon(0.004));
    CHECK(one.most() == Approx(static_cast<double>(UINT64_MAX / 2) * 1e-9));
}
