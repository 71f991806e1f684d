#include "proxy/refusal_log.hpp"

#include <chrono>

#include <catch2/catch.hpp>

namespace noren::proxy {
namespace {

using namespace std::chrono_literals;
using Kind = RefusalEpisode::News::Kind;

constexpr metrics::TimePoint k_start{1h};

}  // namespace

TEST_CASE("nothing refused, nothing told") {
    RefusalEpisode episode;
    for (int second = 0; second < 100; ++second)
        CHECK_FALSE(episode.look(0, k_start + std::chrono::seconds(second)));
}

TEST_CASE("a flood of refusals is told at its begin, every 10 s, and at its end") {
    RefusalEpisode episode;
    CHECK_FALSE(episode.look(0, k_start));
    int lines = 0;
    double told = 0, total = 0;
    for (int second = 1; second <= 60; ++second) {
        total += 1'000;
        const auto news = episode.look(total, k_start + std::chrono::seconds(second));
        if (!news) continue;
        CHECK(news->kind == (lines == 0 ? Kind::begins : Kind::lasts));
        told += news->refused;
        ++lines;
    }
    CHECK(lines == 6);  // at 1, 11, ..., 51 s
    CHECK(told == 51'000);
    for (int second = 61; second < 70; ++second) {
        const auto news = episode.look(total, k_start + std::chrono::seconds(second));
        if (news) CHECK((news->kind == Kind::lasts && news->refused == 9'000));
    }
    const auto end = episode.look(total, k_start + 70s);
    REQUIRE(end);
    CHECK(end->kind == Kind::over);
    CHECK(end->refused == 60'000);
    CHECK_FALSE(episode.look(total, k_start + 200s));
}

TEST_CASE("the next time is told anew") {
    RefusalEpisode episode;
    CHECK(episode.look(1, k_start)->kind == Kind::begins);
    CHECK(episode.look(1, k_start + 10s)->kind == Kind::over);
    const auto again = episode.look(3, k_start + 60s);
    REQUIRE(again);
    CHECK(again->kind == Kind::begins);
    CHECK(again->refused == 2);
}

}  // namespace noren::proxy
