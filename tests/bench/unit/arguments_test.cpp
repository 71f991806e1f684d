#include "tests/bench/load/arguments.hpp"

#include <stdexcept>

#include <catch2/catch.hpp>

using namespace load;
using std::chrono::milliseconds;

TEST_CASE("ranges") {
    CHECK(parse_range("64").least == 64);
    CHECK(parse_range("64").most == 64);
    CHECK(parse_range("16:256").least == 16);
    CHECK(parse_range("16:256").most == 256);
    for (const char* bad : {"", "-5", "0", "5:4", "5:", ":5", "5:6:7", "5x", "1e3", "99999999999", " 5"}) {
        INFO(bad);
        CHECK_THROWS_AS(parse_range(bad), std::invalid_argument);
    }
}

TEST_CASE("durations") {
    CHECK(parse_duration("250ms") == milliseconds(250));
    CHECK(parse_duration("1.5s") == milliseconds(1500));
    CHECK(parse_duration("2m") == milliseconds(120'000));
    CHECK(parse_duration("1h") == milliseconds(3'600'000));
    CHECK(parse_duration("0s") == milliseconds(0));
    for (const char* bad : {"", "10", "s", "-1s", "infs", "nans", "1e300s", "10 s", "10sec", "1s "}) {
        INFO(bad);
        CHECK_THROWS_AS(parse_duration(bad), std::invalid_argument);
    }
}

TEST_CASE("stages") {
    const auto stages = parse_stages("4:5s,16:500ms");
    REQUIRE(stages.size() == 2);
    CHECK(stages[0].connections == 4);
    CHECK(stages[1].connections == 16);
    CHECK(stages[1].duration == milliseconds(500));
    for (const char* bad : {"", ",", "4", "4:", ":5s", "0:5s", "-1:5s", "4:0s", "4:5s,,8:5s", "4-5s"}) {
        INFO(bad);
        CHECK_THROWS_AS(parse_stages(bad), std::invalid_argument);
    }
}

TEST_CASE("headers: well formed, and none that the tool sets itself") {
    CHECK(parse_header("X-Any: thing: else") == "X-Any: thing: else");
    CHECK(parse_header("x-empty:") == "x-empty:");
    for (const char* bad : {"", "no colon", ": v", "a b: c", "a: b\r\nc: d", "Host: x", "CONTENT-LENGTH: 5",
                            "x-request-id: mine"}) {
        INFO(bad);
        CHECK_THROWS_AS(parse_header(bad), std::invalid_argument);
    }
}
