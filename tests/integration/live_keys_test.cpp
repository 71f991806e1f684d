// Keys of the configuration that take hold of what is there already.

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

}  // namespace

TEST_CASE("a shorter upstream.idle_timeout closes connections that are idle already") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.upstream.idle_timeout = 1h; });
    // Two at once, one of them then asked again: that is the younger idle one.
    std::vector<Peer> clients, asked;
    for (int i = 0; i < 2; ++i) {
        clients.push_back(Peer::connect(noren.port()));
        clients.back().send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        asked.push_back(engine.accept());
        asked.back().receive_until("\r\n\r\n");
    }
    for (std::size_t i = 0; i < 2; ++i) {
        asked[i].send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        clients[i].receive_until("\r\n\r\n");
    }
    REQUIRE(noren.reaches("noren_upstream_connections{state=\"idle\"}", 2));

    SECTION("to 0: none is kept") {
        noren.reload([](auto& config) { config.upstream.idle_timeout = 0ms; });
        for (Peer& connection : asked)
            CHECK(connection.receive().empty());
        CHECK(noren.reaches("noren_upstream_connections{state=\"idle\"}", 0));
    }
    SECTION("to less than they have idled") {
        noren.reload([](auto& config) { config.upstream.idle_timeout = 1ms; });
        for (Peer& connection : asked)
            CHECK(connection.receive().empty());
        CHECK(noren.reaches("noren_upstream_connections{state=\"idle\"}", 0));
    }
    SECTION("to more than they have: then, and not before") {
        noren.reload([](auto& config) { config.upstream.idle_timeout = 1min; });
        CHECK(asked[0].is_silent_for(50));
        CHECK(noren.reaches("noren_upstream_connections{state=\"idle\"}", 2));
    }
}
