#include "metrics/token_clock.hpp"

#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using test::at;

struct Read {
    std::uint32_t events;
    double at_ms;
};

/// All gaps of a stream of such reads, each as often as it counts, in seconds.
std::vector<double> gaps_of(TokenClock& clock, const std::vector<Read>& reads) {
    std::vector<double> all;
    const auto add = [&all](const TokenClock::Gaps& gaps) { all.insert(all.end(), gaps.count, gaps.each); };
    for (const Read& read : reads)
        add(clock.on_events(read.events, at(read.at_ms)));
    add(clock.settle());
    add(clock.settle());  // twice counts once
    return all;
}

double sum_of(const std::vector<double>& gaps) {
    double sum = 0;
    for (const double gap : gaps)
        sum += gap;
    return sum;
}

TEST_CASE("token clock: a stream without tokens has no first one and no speed") {
    TokenClock clock;
    CHECK(gaps_of(clock, {{0, 5}}).empty());
    CHECK(clock.events() == 0);
    CHECK_FALSE(clock.first());
    CHECK_FALSE(clock.time_per_output_token(10));
}

TEST_CASE("token clock: one token has no gap") {
    TokenClock clock;
    CHECK(gaps_of(clock, {{1, 100}}).empty());
    CHECK(clock.first() == at(100));
    CHECK(clock.last() == at(100));
    CHECK_FALSE(clock.time_per_output_token(1));
}

TEST_CASE("token clock: two tokens span one interval") {
    TokenClock clock;
    const auto gaps = gaps_of(clock, {{1, 100}, {1, 150}});
    REQUIRE(gaps.size() == 1);
    CHECK(gaps[0] == Approx(0.050));
    CHECK(clock.time_per_output_token(2).value() == Approx(0.050));
    CHECK(clock.time_per_output_token(6).value() == Approx(0.010));
    CHECK_FALSE(clock.time_per_output_token(1));
    CHECK_FALSE(clock.time_per_output_token(0));
}

TEST_CASE("token clock: events of one read share its gap") {
    TokenClock clock;
    // The first read has no gap, whatever it holds; then four times 10 ms, and 30 ms.
    const auto gaps = gaps_of(clock, {{3, 0}, {4, 40}, {1, 70}});
    CHECK(clock.events() == 8);
    REQUIRE(gaps.size() == 5);
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(gaps[i] == Approx(0.010));
    CHECK(gaps[4] == Approx(0.030));
}

TEST_CASE("token clock: calls with the same time are one read") {
    TokenClock clock;
    const auto gaps = gaps_of(clock, {{1, 0}, {1, 0}, {1, 40}, {3, 40}});
    CHECK(clock.events() == 6);
    REQUIRE(gaps.size() == 4);
    for (const double gap : gaps)
        CHECK(gap == Approx(0.010));
}

TEST_CASE("token clock: a gap is known when its read is over") {
    TokenClock clock;
    CHECK(clock.on_events(1, at(0)).count == 0);
    CHECK(clock.on_events(1, at(10)).count == 0);
    CHECK(clock.on_events(1, at(10)).count == 0);  // the same read
    const TokenClock::Gaps gaps = clock.on_events(1, at(40));
    CHECK(gaps.count == 2);
    CHECK(gaps.each == Approx(0.005));
}

TEST_CASE("token clock: all in one read: the speed cannot be seen from here") {
    TokenClock clock;
    CHECK(gaps_of(clock, {{50, 10}}).empty());
    CHECK_FALSE(clock.time_per_output_token(50));
}

TEST_CASE(
    "token clock: whatever the reads, gaps are one less than events after the first read and add up to its "
    "span") {
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
        TokenClock clock;
        std::vector<Read> reads;
        double now = 0;
        std::uint32_t events = 0, first_read = 0;
        for (std::size_t i = random() % 40 + 1; i > 0; --i) {
            now += 0.01 + static_cast<double>(random() % 100'000) / 1000;
            reads.push_back({static_cast<std::uint32_t>(random() % 5), now});
            events += reads.back().events;
            if (first_read == 0) first_read = reads.back().events;
        }
        const auto gaps = gaps_of(clock, reads);
        CHECK(clock.events() == events);
        CHECK(gaps.size() == events - first_read);
        if (events > 0) CHECK(sum_of(gaps) == Approx(seconds(clock.last() - *clock.first())).margin(1e-9));
    }
}

}  // namespace
}  // namespace noren::metrics
