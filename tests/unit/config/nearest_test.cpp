#include "config/nearest.hpp"

#include <array>
#include <string>

#include <catch2/catch.hpp>

namespace config = noren::config;

TEST_CASE("a slip leads to the name that was meant") {
    constexpr std::array<std::string_view, 4> names = {"max_queue", "max_concurrency", "queue_timeout",
                                                       "url"};
    const auto nearest = [&](std::string_view typed) { return config::nearest(typed, names); };
    CHECK(nearest("max_queu") == "max_queue");
    CHECK(nearest("max_qeueu") == "max_queue");
    CHECK(nearest("maxQueue") == "max_queue");
    CHECK(nearest("MAX-QUEUE") == "max_queue");
    CHECK(nearest("max_concurency") == "max_concurrency");
    CHECK(nearest("timeout_queue").empty());
    CHECK(nearest("ulr") == "url");
    CHECK(nearest("uri") == "url");
    CHECK(nearest("up").empty());
    CHECK(nearest("").empty());
    CHECK(nearest("colour").empty());
    CHECK(nearest(std::string(100'000, 'x')).empty());
    CHECK(config::nearest("url", {}).empty());
}
