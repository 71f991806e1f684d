#include "proxy/upload_pace.hpp"

#include <chrono>

#include <catch2/catch.hpp>

namespace noren::proxy {
namespace {

using namespace std::chrono_literals;

constexpr metrics::TimePoint k_start{1h};

}  // namespace

TEST_CASE("each window must bring its share") {
    UploadPace pace(500, 30s);  // 15,000 bytes each
    CHECK(pace.due() == net::k_never);
    pace.took(0, k_start);
    CHECK(pace.due() == k_start + 30s);
    pace.took(14'999, k_start + 29s);
    CHECK(pace.due() == k_start + 30s);
    pace.took(15'000, k_start + 30s);
    CHECK(pace.due() == k_start + 60s);
}

TEST_CASE("a burst is no credit for later") {
    UploadPace pace(500, 30s);
    pace.took(0, k_start);
    pace.took(10'000'000, k_start + 1s);
    CHECK(pace.due() == k_start + 31s);
    pace.took(10'000'100, k_start + 30s);
    CHECK(pace.due() == k_start + 31s);
}

TEST_CASE("a client at just the rate may go on for ever") {
    UploadPace pace(500, 30s);
    pace.took(0, k_start);
    for (int second = 1; second <= 600; ++second) {
        pace.took(static_cast<std::uint64_t>(second) * 500, k_start + std::chrono::seconds(second));
        REQUIRE(pace.due() > k_start + std::chrono::seconds(second));
    }
}

TEST_CASE("time in which nobody waits for the client does not count") {
    UploadPace pace(500, 30s);
    pace.took(0, k_start);
    pace.rest();
    CHECK(pace.due() == net::k_never);
    pace.took(100, k_start + 10min);
    CHECK(pace.due() == k_start + 10min + 30s);
}

TEST_CASE("a rate of 0 is no limit, and the smallest rate and window still are one") {
    UploadPace any(0, 30s);
    any.took(0, k_start);
    CHECK(any.due() == net::k_never);
    UploadPace least(1, 10ms);  // a share of one byte
    least.took(0, k_start);
    CHECK(least.due() == k_start + 10ms);
    least.took(1, k_start + 9ms);
    CHECK(least.due() == k_start + 19ms);
}

}  // namespace noren::proxy
