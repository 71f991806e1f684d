// Leaving without cutting anybody off: what runs is finished, what comes is told, who waits is let go.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::NorenUnderTest;
using test::Peer;

sim::Options steady_engine() {
    sim::Options options;
    options.lone = sim::Pace{5ms, 10ms, false};
    return options;
}

}  // namespace

TEST_CASE("streams that run when a drain begins are finished, newcomers are refused, the process ends") {
    sim::Engine engine(steady_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.workers = 2;
        config.drain.timeout = 60s;
    });
    std::vector<Peer> clients;
    for (int i = 0; i < 200; ++i) {
        clients.push_back(Peer::connect(noren.port()));
        clients.back().send(test::long_chat("x-sim-tokens: 200\r\n"));
    }
    REQUIRE(noren.reaches("noren_running_requests", 200));
    noren.terminate();
    REQUIRE(noren.reaches("noren_draining", 1));
    std::string refusal;
    while (!refusal.starts_with("HTTP/1.1 503 ")) {  // from the end of the lame-duck time on, here none
        Peer late = Peer::connect(noren.port());
        late.send(test::long_chat("x-sim-tokens: 1\r\n"));
        refusal = late.receive_all();
        REQUIRE_FALSE(refusal.empty());
    }
    CHECK(refusal.find("\r\nx-noren-reason: draining\r\n") != std::string::npos);
    CHECK(refusal.find("\r\nConnection: close\r\n") != std::string::npos);
    CHECK(refusal.find("\r\nRetry-After: ") != std::string::npos);
    int whole = 0;
    for (Peer& client : clients)
        whole += test::is_whole_stream(client.receive_all());
    CHECK(whole == 200);
    CHECK(noren.ends());
}

TEST_CASE("a second request to end ends at once, and what ran is visibly cut") {
    sim::Engine engine(steady_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) { config.drain.timeout = 60s; });
    Peer client = Peer::connect(noren.port());
    client.send(test::long_chat("x-sim-tokens: 100000\r\n"));
    client.receive_until("data: ");
    noren.terminate();
    noren.terminate();
    const std::string rest = client.receive_all();
    CHECK_FALSE(rest.ends_with("0\r\n\r\n"));
    CHECK(noren.ends());
}

TEST_CASE("in the lame-duck time work is taken, and connections close after it") {
    sim::Engine engine(steady_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) { config.drain.lame_duck = 60s; });
    Peer kept = Peer::connect(noren.port());
    kept.send(test::long_chat("x-sim-tokens: 2\r\n"));
    kept.receive_until("\r\n0\r\n\r\n");
    noren.terminate();
    REQUIRE(noren.reaches("noren_draining", 1));
    for (int i = 0; i < 2; ++i) {
        Peer client = i == 0 ? std::move(kept) : Peer::connect(noren.port());
        client.send(test::long_chat("x-sim-tokens: 2\r\n"));
        const std::string answer = client.receive_all();
        CHECK(test::is_whole_stream(answer));
        CHECK(answer.find("\r\nConnection: close\r\n") != std::string::npos);
    }
}
