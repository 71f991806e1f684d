#include "tests/sim/pace.hpp"

#include <catch2/catch.hpp>

using namespace sim;
using namespace std::chrono_literals;

namespace {

std::vector<Duration> gaps(const Pace& pace, std::uint64_t seed, std::string_view id, int count = 20) {
    GapSource source(pace, seed, id);
    std::vector<Duration> out;
    for (int i = 0; i < count; ++i)
        out.push_back(source.next());
    return out;
}

}  // namespace

TEST_CASE("fixed gaps are all the same") {
    for (Duration gap : gaps({.gap = 66ms}, 42, "a"))
        CHECK(gap == 66ms);
}

TEST_CASE("exponential gaps follow from seed and request id") {
    const Pace pace{.gap = 66ms, .exponential = true};
    CHECK(gaps(pace, 42, "a") == gaps(pace, 42, "a"));
    CHECK(gaps(pace, 42, "a") != gaps(pace, 43, "a"));
    CHECK(gaps(pace, 42, "a") != gaps(pace, 42, "b"));
}

TEST_CASE("exponential gaps have the mean and the spread of an exponential distribution") {
    const Pace pace{.gap = 10ms, .exponential = true};
    const int count = 100'000;
    double sum = 0;
    double squares = 0;
    int above_mean = 0;
    for (Duration gap : gaps(pace, 1, "x", count)) {
        REQUIRE(gap.count() >= 0);
        const double ms = std::chrono::duration<double, std::milli>(gap).count();
        sum += ms;
        squares += ms * ms;
        above_mean += ms > 10 ? 1 : 0;
    }
    const double mean = sum / count;
    CHECK(mean == Approx(10).epsilon(0.02));
    CHECK(squares / count - mean * mean == Approx(100).epsilon(0.05));
    CHECK(static_cast<double>(above_mean) / count == Approx(0.3679).epsilon(0.02));  // 1/e
}
