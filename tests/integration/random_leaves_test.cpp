// Clients that come, do something and go, at random and in thousands: what is left behind must be nothing.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::NorenUnderTest;
using test::Peer;

constexpr std::size_t k_open = 32;  ///< clients at a time
constexpr std::uint32_t k_cap = 8, k_queue = 16;

/// A client, and whether its request is whole, so that an answer may come.
struct Visitor {
    Peer peer;
    bool asked;
};

Visitor come(std::uint16_t port, std::mt19937& random) {
    Visitor visitor{Peer::connect(port), random() % 8 != 0};
    const std::string whole = test::chat(20, "", random() % 4 != 0);
    visitor.peer.send(visitor.asked ? whole : whole.substr(0, random() % whole.size()));
    return visitor;
}

/// By FIN or RST, after having read a little or nothing.
void go(Visitor& visitor, std::mt19937& random) {
    if (visitor.asked && random() % 64 == 0) visitor.peer.receive(1 + random() % 2000);
    if (random() % 2 == 0) visitor.peer.reset();
    visitor.peer.close();
}

/// Requests that ended with an outcome, over all labels.
double ended_as(const NorenUnderTest& noren, const std::string& outcome) {
    double sum = 0;
    for (const auto& [series, value] : noren.metrics())
        if (series.starts_with("noren_requests_total{") &&
            series.find("outcome=\"" + outcome + "\"") != std::string::npos)
            sum += value;
    return sum;
}

int random_leaves() {
    const char* wanted = std::getenv("NOREN_LEAVES");
    return wanted ? std::atoi(wanted) : 2'000;
}

}  // namespace

TEST_CASE("after thousands of random leaves every gauge is at 0, and nobody else was blamed") {
    sim::Options options;
    options.lone = sim::Pace{3ms, 1ms, true};
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = k_cap;
        config.admission.max_queue = k_queue;
        config.workers = 2;
        config.log.access = "off";
    });
    std::mt19937 random(8);
    const int leaves = random_leaves();
    std::vector<Visitor> open;
    for (int i = 0; i < leaves; ++i) {
        open.push_back(come(noren.port(), random));
        if (open.size() < k_open) continue;
        const std::size_t which = random() % open.size();
        go(open[which], random);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(which));
    }
    open.clear();
    CHECK(noren.reaches("noren_client_connections", 0));
    test::expect_nothing_held(noren);
    CHECK(ended_as(noren, "client_closed") > leaves / 4);
    for (const char* blame : {"upstream_error", "internal_error", "timeout", "bad_request"})
        CHECK(ended_as(noren, blame) == 0);
    REQUIRE(engine.wait_for_truths(engine.counters().requests, 20s));
    CHECK(engine.counters().active == 0);
    CHECK(engine.counters().most_active <= k_cap);
    CHECK(engine.counters().faulted + engine.counters().refused == 0);
    std::printf("%d random leaves: %.0f requests ended as client_closed, %.0f refused, %.0f whole\n", leaves,
                ended_as(noren, "client_closed"), ended_as(noren, "rejected"), ended_as(noren, "ok"));
}
