// The cap and the queue, end to end, against a simulated engine.

#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::NorenUnderTest;
using test::Peer;

std::string chat(const std::string& extra = "") {
    return test::chat(4, extra);
}

const std::string k_endless = "x-sim-tokens: 100000\r\n";

}  // namespace

TEST_CASE("end to end: cap 1, queue 2, 50 arrivals: 1 runs, 2 wait, 47 are told to come back") {
    sim::Engine engine(test::quick_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.admission.max_queue = 2;
        config.workers = 2;
    });
    std::vector<Peer> clients;
    for (int i = 0; i < 50; ++i) {
        clients.push_back(Peer::connect(noren.port()));
        clients.back().send(chat(k_endless));
    }
    REQUIRE(noren.reaches("noren_queue_rejections_total{reason=\"full\"}", 47));
    CHECK(noren.reaches("noren_running_requests", 1));
    CHECK(noren.reaches("noren_queued_requests", 2));
    CHECK(noren.reaches("noren_saturation_ratio", 3));
    // The refusals may be ahead of the engine, which has yet to read the one request that it gets.
    CHECK(test::eventually([&] { return engine.counters().active == 1; }));
    int refused = 0;
    for (Peer& client : clients) {
        if (client.is_silent_for(0)) continue;
        const std::string answer = client.receive_until("}");
        if (!answer.starts_with("HTTP/1.1 429 ")) continue;
        ++refused;
        CHECK(answer.find("\r\nRetry-After: ") != std::string::npos);
        CHECK(answer.find("\r\nx-noren-reason: queue_full\r\n") != std::string::npos);
        CHECK(answer.find("\"code\":\"queue_full\"") != std::string::npos);
    }
    CHECK(refused == 47);
    clients.clear();
    CHECK(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.metric("noren_running_requests") == 0);
    CHECK(noren.metric("noren_queued_requests") == 0);
    CHECK(engine.counters().most_active == 1);
    // Who was refused has a model all the same.
    int told = 0;
    for (const std::string& line : noren.access_log())
        told += line.find("\"status\":429,") != std::string::npos &&
                line.find("\"model\":\"m\"") != std::string::npos;
    CHECK(told == 47);
}

TEST_CASE("a waiting request runs when its turn comes, and what is not generating never waits") {
    sim::Engine engine(test::quick_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) { config.admission.max_concurrency = 1; });
    Peer first = Peer::connect(noren.port());
    first.send(chat(k_endless));
    REQUIRE(noren.reaches("noren_running_requests", 1));
    Peer second = Peer::connect(noren.port());
    second.send(chat());
    REQUIRE(noren.reaches("noren_queued_requests", 1));
    CHECK(test::get(noren.port(), "/v1/models").find("sim-7b") != std::string::npos);
    CHECK(second.is_silent_for(50));
    first.close();
    CHECK(second.receive_until("[DONE]").find("[DONE]") != std::string::npos);
}

TEST_CASE("queue_timeout is told as such, and the place is free again") {
    sim::Engine engine(test::quick_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.admission.queue_timeout = 30ms;
        config.admission.full_status = 503;
    });
    Peer first = Peer::connect(noren.port());
    first.send(chat(k_endless));
    REQUIRE(noren.reaches("noren_running_requests", 1));
    Peer second = Peer::connect(noren.port());
    second.send(chat());
    const std::string answer = second.receive_until("}");
    CHECK(answer.starts_with("HTTP/1.1 503 "));
    CHECK(answer.find("x-noren-reason: queue_timeout") != std::string::npos);
    CHECK(noren.metric("noren_queued_requests") == 0);
    CHECK(noren.reaches("noren_queue_rejections_total{reason=\"timeout\"}", 1));
}

TEST_CASE("the permit is back when the engine is done, though the client has read nothing") {
    sim::Options options = test::quick_engine();
    options.lone->gap = 0ms;
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.downstream.buffer = 64 * 1024 * 1024;
    });
    Peer slow = Peer::connect(noren.port());
    slow.send(chat("x-sim-tokens: 20000\r\nx-sim-bytes: 600\r\n"));  // more than the sockets hold
    Peer next = Peer::connect(noren.port());
    next.send(chat());
    CHECK(next.receive_until("[DONE]").find("[DONE]") != std::string::npos);
    CHECK(noren.reaches("noren_inflight_requests", 1));
    CHECK(slow.receive_until("[DONE]").find("[DONE]") != std::string::npos);
}
