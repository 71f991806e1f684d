#include "proxy/admission/connection_quota.hpp"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "proxy/descriptors.hpp"

namespace noren::proxy::admission {
namespace {

using Entry = ConnectionQuota::Entry;
using Place = ConnectionQuota::Place;

constexpr std::uint32_t k_many = 1'000'000;

ClientKey client(unsigned char last) {
    ClientKey key{};
    key.back() = last;
    return key;
}

}  // namespace

TEST_CASE("connections in all are bounded, and a place that goes is free again") {
    ConnectionQuota quota({2, k_many, 0});
    Place first, second, third;
    CHECK(quota.enter(client(1), first) == Entry::in);
    CHECK(quota.enter(std::nullopt, second) == Entry::in);
    CHECK(quota.enter(client(2), third) == Entry::full);
    CHECK_FALSE(third);
    CHECK(quota.open() == 2);
    second = Place();
    CHECK(quota.enter(client(2), third) == Entry::in);
    CHECK(quota.open() == 2);
}

TEST_CASE("fewer than the limit fit where there are fewer descriptors") {
    ConnectionQuota quota({k_many, 1, 0});
    Place first, second;
    CHECK(quota.enter(client(1), first) == Entry::in);
    CHECK(quota.enter(client(1), second) == Entry::no_descriptors);
    quota.set_limits({k_many, 2, 0});
    CHECK(quota.enter(client(1), second) == Entry::in);
}

TEST_CASE("connections to the engine without a permit and those of clients share the descriptors") {
    ConnectionQuota quota({k_many, 3, 0});
    Place first, second, third;
    CHECK(quota.enter(client(1), first) == Entry::in);
    {
        ConnectionQuota::EnginePlace one, two, three;
        CHECK(quota.enter_engine(one));
        CHECK(quota.enter_engine(one));  // again: it has it
        CHECK(quota.enter_engine(two));
        CHECK_FALSE(quota.enter_engine(three));
        CHECK(quota.enter(client(1), second) == Entry::no_descriptors);
        CHECK(quota.open() == 1);
        two.leave();
        two.leave();
        CHECK(quota.enter(client(1), second) == Entry::in);
        CHECK_FALSE(quota.enter_engine(three));
    }
    CHECK(quota.enter(client(1), third) == Entry::in);
}

TEST_CASE("connections to the engine may have what is kept for them and what the clients leave") {
    ConnectionQuota quota({k_many, 3, 0, 1, 10});
    Place first, second;
    CHECK(quota.descriptors_for_engine() == 13);
    CHECK(quota.enter(client(1), first) == Entry::in);
    CHECK(quota.enter(client(1), second) == Entry::in);
    CHECK(quota.descriptors_for_engine() == 11);
    quota.set_limits({k_many, 1, 0, 1, 10});
    CHECK(quota.descriptors_for_engine() == 10);
}

TEST_CASE("some connections to the engine without a permit have descriptors however many clients there are") {
    ConnectionQuota quota({k_many, 2, 0, 1});
    Place first, second, third;
    CHECK(quota.enter(client(1), first) == Entry::in);
    CHECK(quota.enter(client(1), second) == Entry::in);
    CHECK(quota.enter(client(1), third) == Entry::no_descriptors);
    ConnectionQuota::EnginePlace one, two;
    CHECK(quota.enter_engine(one));
    CHECK_FALSE(quota.enter_engine(two));
    first = Place();
    CHECK(quota.enter_engine(two));
    CHECK(quota.enter(client(1), third) == Entry::no_descriptors);
    one.leave();
    CHECK(quota.enter(client(1), third) == Entry::in);
}

TEST_CASE("one client's connections are bounded, its neighbour's are not touched by that") {
    ConnectionQuota quota({k_many, k_many, 2});
    std::vector<Place> places(5);
    CHECK(quota.enter(client(1), places[0]) == Entry::in);
    CHECK(quota.enter(client(1), places[1]) == Entry::in);
    CHECK_FALSE(quota.last_client_full());
    CHECK(quota.enter(client(1), places[2]) == Entry::client_full);
    CHECK(quota.last_client_full() == client(1));
    CHECK(quota.enter(client(2), places[2]) == Entry::in);
    CHECK(quota.enter(std::nullopt, places[3]) == Entry::in);  // on a Unix socket nobody has an address
    const Place moved = std::move(places[0]);
    CHECK(quota.enter(client(1), places[4]) == Entry::client_full);
    places[1] = Place();
    CHECK(quota.enter(client(1), places[4]) == Entry::in);
    CHECK(quota.open() == 4);
}

TEST_CASE("a limit for each client that is set later finds the connections there are") {
    ConnectionQuota quota({k_many, k_many, 0});
    std::vector<Place> places(4);
    for (std::size_t i = 0; i < 3; ++i)
        REQUIRE(quota.enter(client(1), places[i]) == Entry::in);
    quota.set_limits({k_many, k_many, 2});
    CHECK(quota.open() == 3);  // nobody is thrown out
    CHECK(quota.enter(client(1), places[3]) == Entry::client_full);
    places[0] = Place();
    CHECK(quota.enter(client(1), places[3]) == Entry::client_full);
    places[1] = Place();
    CHECK(quota.enter(client(1), places[3]) == Entry::in);
}

TEST_CASE("from several threads no limit is exceeded and every place comes back") {
    constexpr std::uint32_t k_in_all = 50, k_each = 20;
    ConnectionQuota quota({k_in_all, k_many, k_each});
    std::array<std::atomic<std::uint32_t>, 4> open{};
    std::atomic<bool> exceeded{false};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (unsigned round = 0; round < 2'000; ++round) {
                std::vector<Place> mine(30);
                const unsigned who = (thread + round) % 4;
                for (Place& place : mine) {
                    if (quota.enter(client(static_cast<unsigned char>(who)), place) != Entry::in) continue;
                    if (++open[who] > k_each || quota.open() > k_in_all) exceeded = true;
                }
                for (const Place& place : mine)
                    if (place) --open[who];  // before it goes: never counted for longer than it is held
            }
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK_FALSE(exceeded);
    CHECK(quota.open() == 0);
}

TEST_CASE("descriptors are kept back for the engine's side, never more than half") {
    CHECK(connections_that_fit(20'000, 64) == 20'000 - 128 - 64);
    CHECK(connections_that_fit(1'024, 256) == 1'024 - 128 - 256);
    CHECK(connections_that_fit(1'024, 4'000) == 512);
    CHECK(connections_that_fit(1'024, 0) == 512);
    CHECK(connections_that_fit(~std::uint64_t{0}, 256) == ~std::uint32_t{0});
}

}  // namespace noren::proxy::admission
