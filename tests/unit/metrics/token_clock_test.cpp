#include "metrics/token_clock.hpp"

#include <algorithm>
#include <random>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using test::at;

/// Gaps in the bin whose upper bound that is.
std::uint32_t in_bin(const TokenClock& clock, double bound) {
    const Buckets bounds = buckets::itl();
    const auto found = std::find(bounds.begin(), bounds.end(), bound);
    REQUIRE(found != bounds.end());
    return clock.bins().counts[static_cast<std::size_t>(found - bounds.begin())];
}

TEST_CASE("token clock: a stream without tokens has no first one and no speed") {
    TokenClock clock;
    clock.on_events(0, at(5));
    clock.settle();
    CHECK(clock.events() == 0);
    CHECK_FALSE(clock.first());
    CHECK_FALSE(clock.time_per_output_token(10));
    CHECK(clock.bins().total == 0);
}

TEST_CASE("token clock: one token has no gap") {
    TokenClock clock;
    clock.on_events(1, at(100));
    clock.settle();
    CHECK(clock.first() == at(100));
    CHECK(clock.last() == at(100));
    CHECK(clock.bins().total == 0);
    CHECK_FALSE(clock.time_per_output_token(1));
}

TEST_CASE("token clock: two tokens span one interval") {
    TokenClock clock;
    clock.on_events(1, at(100));
    clock.on_events(1, at(150));
    clock.settle();
    CHECK(clock.bins().total == 1);
    CHECK(clock.bins().sum == Approx(0.050));
    CHECK(in_bin(clock, 0.05) == 1);  // a bound belongs to its own bin
    CHECK(clock.time_per_output_token(2).value() == Approx(0.050));
    CHECK(clock.time_per_output_token(6).value() == Approx(0.010));
    CHECK_FALSE(clock.time_per_output_token(1));
    CHECK_FALSE(clock.time_per_output_token(0));
}

TEST_CASE("token clock: events of one read share its gap") {
    TokenClock clock;
    clock.on_events(3, at(0));   // the first read has no gap, whatever it holds
    clock.on_events(4, at(40));  // four times 10 ms
    clock.on_events(1, at(70));  // 30 ms
    clock.settle();
    CHECK(clock.events() == 8);
    CHECK(clock.bins().total == 5);
    CHECK(in_bin(clock, 0.01) == 4);
    CHECK(in_bin(clock, 0.03) == 1);
    CHECK(clock.bins().sum == Approx(0.070));
}

TEST_CASE("token clock: calls with the same time are one read") {
    TokenClock clock;
    clock.on_events(1, at(0));
    clock.on_events(1, at(0));
    clock.on_events(1, at(40));
    clock.on_events(3, at(40));
    clock.settle();
    CHECK(clock.events() == 6);
    CHECK(clock.bins().total == 4);
    CHECK(in_bin(clock, 0.01) == 4);
}

TEST_CASE("token clock: all in one read: the speed cannot be seen from here") {
    TokenClock clock;
    clock.on_events(50, at(10));
    clock.settle();
    CHECK(clock.bins().total == 0);
    CHECK_FALSE(clock.time_per_output_token(50));
}

TEST_CASE("token clock: gaps beyond the last bound have a bin") {
    TokenClock clock;
    clock.on_events(1, at(0));
    clock.on_events(1, at(81'000));
    clock.settle();
    CHECK(clock.bins().counts.back() == 1);
}

TEST_CASE("token clock: bins are due after 64 gaps or a second") {
    TokenClock by_count;
    for (int i = 0; i <= 64; ++i)
        by_count.on_events(1, at(i));
    CHECK_FALSE(by_count.flush_due());  // 64 gaps, but the last read is still open
    by_count.on_events(1, at(65));
    CHECK(by_count.flush_due());
    by_count.clear_bins();
    CHECK_FALSE(by_count.flush_due());

    TokenClock by_age;
    by_age.on_events(1, at(0));
    by_age.on_events(1, at(10));
    by_age.on_events(1, at(500));
    CHECK_FALSE(by_age.flush_due());
    by_age.on_events(1, at(1010));
    CHECK(by_age.flush_due());
}

TEST_CASE("token clock: settling twice counts once") {
    TokenClock clock;
    clock.on_events(1, at(0));
    clock.on_events(2, at(8));
    clock.settle();
    clock.settle();
    CHECK(clock.bins().total == 2);
    CHECK(clock.bins().sum == Approx(0.008));
}

TEST_CASE(
    "token clock: whatever the reads, gaps are one less than events after the first read and add up to its "
    "span") {
    std::mt19937 random(7);
    for (int round = 0; round < 500; ++round) {
        TokenClock clock;
        const int reads = static_cast<int>(random() % 40) + 1;
        double now = 0, sum = 0;
        std::uint32_t events = 0, first_read = 0, total = 0;
        for (int i = 0; i < reads; ++i) {
            const auto k = static_cast<std::uint32_t>(random() % 5);
            now += 0.01 + static_cast<double>(random() % 100'000) / 1000;
            clock.on_events(k, at(now));
            events += k;
            if (first_read == 0) first_read = k;
            if (clock.flush_due()) {
                total += clock.bins().total;
                sum += clock.bins().sum;
                clock.clear_bins();
            }
        }
        clock.settle();
        total += clock.bins().total;
        sum += clock.bins().sum;
        CHECK(clock.events() == events);
        CHECK(total == events - first_read);
        if (events > 0) CHECK(sum == Approx(seconds(clock.last() - *clock.first())).margin(1e-9));
    }
}

}  // namespace
}  // namespace noren::metrics
