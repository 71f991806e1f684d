#include "config/reload_schedule.hpp"

#include <chrono>

#include <catch2/catch.hpp>

namespace config = noren::config;
using namespace std::chrono_literals;

namespace {

const config::ReloadSchedule::TimePoint k_start{1h};

}  // namespace

TEST_CASE("without events the file is looked at every 5 s") {
    config::ReloadSchedule schedule(k_start);
    CHECK(schedule.next() == k_start + 5s);
    CHECK_FALSE(schedule.is_due(k_start + 4999ms));
    CHECK(schedule.is_due(k_start + 5s));
    schedule.on_look(k_start + 5s + 3ms);
    CHECK(schedule.next() == k_start + 10s + 3ms);
}

TEST_CASE("an event brings the look forward, after things have been quiet for 150 ms") {
    config::ReloadSchedule schedule(k_start);
    schedule.on_event(k_start + 1s);
    CHECK(schedule.next() == k_start + 1150ms);
    schedule.on_event(k_start + 1s + 60ms);
    CHECK(schedule.next() == k_start + 1210ms);
    CHECK_FALSE(schedule.is_due(k_start + 1209ms));
    CHECK(schedule.is_due(k_start + 1210ms));
    schedule.on_look(k_start + 1210ms);
    CHECK(schedule.next() == k_start + 6210ms);
}

TEST_CASE("events without end cannot put the look off") {
    config::ReloadSchedule schedule(k_start);
    for (auto at = k_start; !schedule.is_due(at); at += 10ms) {
        REQUIRE(at < k_start + 1s);
        schedule.on_event(at);
    }
    CHECK(schedule.next() == k_start + 250ms);
    schedule.on_look(k_start + 250ms);
    schedule.on_event(k_start + 260ms);
    CHECK(schedule.next() == k_start + 410ms);
}

TEST_CASE("a poll that falls between an event and its look waits for the look") {
    config::ReloadSchedule schedule(k_start);
    schedule.on_event(k_start + 4950ms);
    CHECK_FALSE(schedule.is_due(k_start + 5s));
    CHECK(schedule.is_due(k_start + 5100ms));
}
