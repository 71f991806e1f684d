// A client that goes away, in every phase: the engine is told at once, the permit comes back, and it is
// nobody's fault.

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::NorenUnderTest;
using test::Peer;

void expect_left(NorenUnderTest& noren, const std::string& phase) {
    CHECK(noren.reaches("noren_client_disconnects_total{phase=\"" + phase + "\"}", 1));
    test::expect_nothing_held(noren);
    for (const char* reason : {"connect", "reset", "timeout", "protocol"})
        CHECK(noren.metric("noren_upstream_errors_total{reason=\"" + std::string(reason) + "\"}") == 0);
}

/// The engine saw the cancel. How soon is told by leave_times_test.cpp; here it is bounded loosely.
void expect_cancel_seen(sim::Engine& engine, sim::TimePoint left) {
    REQUIRE(engine.wait_for_truths(1, 20s));
    const sim::Truth truth = engine.truth().front();
    REQUIRE(truth.cancel_seen.has_value());
    CHECK(truth.outcome == "cancelled");
    CHECK(*truth.cancel_seen - left < 5s);
}

}  // namespace

TEST_CASE("a client leaves during a silent prefill") {
    for (const bool stream : {true, false}) {
        sim::Engine engine(test::slow_engine());
        engine.start();
        NorenUnderTest noren(engine.url());
        Peer client = Peer::connect(noren.port());
        client.send(test::long_chat("", stream));
        REQUIRE(test::arrived(engine, 1));
        const auto left = std::chrono::steady_clock::now();
        SECTION(stream ? "by FIN, streaming" : "by FIN, plain") {
            client.close();
        }
        SECTION(stream ? "by RST, streaming" : "by RST, plain") {
            client.reset();
        }
        client.close();
        expect_cancel_seen(engine, left);
        expect_left(noren, "prefill");
    }
}

TEST_CASE("a client leaves in the middle of a stream") {
    sim::Engine engine(test::slow_engine());
    engine.start();
    NorenUnderTest noren(engine.url());
    Peer client = Peer::connect(noren.port());
    client.send(test::long_chat("x-sim-ttft-ms: 1\r\n"));
    client.receive_until("\"content\":\" ");
    const auto left = std::chrono::steady_clock::now();
    client.close();
    expect_cancel_seen(engine, left);
    expect_left(noren, "decode");
    CHECK(noren.metric("noren_requests_total{model=\"m\",endpoint=\"chat_completions\",code=\"200\",outcome="
                       "\"client_closed\"}") == -1);  // labels come sorted
    CHECK(noren.metric("noren_requests_total{code=\"200\",endpoint=\"chat_completions\",model=\"m\",outcome="
                       "\"client_closed\"}") == 1);
}

TEST_CASE("a client leaves the queue") {
    for (const bool large : {false, true}) {
        INFO("a body larger than is held: " << large);
        sim::Engine engine(test::slow_engine());
        engine.start();
        NorenUnderTest noren(engine.url(), [](auto& config) { config.admission.max_concurrency = 1; });
        Peer running = Peer::connect(noren.port());
        running.send(test::long_chat());
        REQUIRE(test::arrived(engine, 1));
        Peer waiting = Peer::connect(noren.port());
        if (large) {
            // Held, read ahead, and the rest in the kernel: the end of it has arrived, unread.
            waiting.send("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n" +
                         std::string(360'000, ' '));
        } else {
            waiting.send(test::long_chat());
        }
        REQUIRE(noren.reaches("noren_queued_requests", 1));
        waiting.close();
        CHECK(noren.reaches("noren_queued_requests", 0));
        CHECK(noren.reaches("noren_client_disconnects_total{phase=\"queued\"}", 1));
        CHECK(engine.counters().requests == 1);
    }
}

TEST_CASE("a client leaves in the middle of its upload") {
    sim::Engine engine(test::slow_engine());
    engine.start();
    NorenUnderTest noren(engine.url());
    const std::size_t size = GENERATE(std::size_t{1000}, std::size_t{1'000'000});
    Peer client = Peer::connect(noren.port());
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(size) +
                "\r\n\r\n" + std::string(size / 2, ' '));
    REQUIRE(noren.reaches("noren_inflight_requests", 1));
    if (size > 500'000) REQUIRE(test::arrived(engine, 1));  // too much to be held: it is on its way
    client.close();
    expect_left(noren, "upload");
    CHECK(engine.counters().complete == 0);
}

TEST_CASE("a client leaves while noren is connecting") {
    test::Listener deaf(0);
    deaf.fill_backlog();
    NorenUnderTest noren(deaf.url(), [](auto& config) { config.timeouts.connect = 20s; });
    Peer client = Peer::connect(noren.port());
    client.send(test::long_chat());
    REQUIRE(noren.reaches("noren_running_requests", 1));
    client.close();
    expect_left(noren, "connect");
}

TEST_CASE("a client that closes at the end marker has its whole answer") {
    test::Listener engine;
    NorenUnderTest noren(engine.url());
    Peer client = Peer::connect(noren.port());
    client.send(test::long_chat());
    Peer upstream = engine.accept();
    upstream.receive_until("\"x\"}]}");
    const std::string event = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    const bool whole = GENERATE(true, false);
    const std::string end = whole ? "data: [DONE]\n\n" : event;
    upstream.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" +
                  test::chunk(event) + test::chunk(end));
    client.receive_until(test::chunk(end));
    client.close();  // the last chunk has not come yet
    CHECK(noren.reaches("noren_inflight_requests", 0));
    const std::string outcome = whole ? "ok" : "client_closed";
    CHECK(noren.metric(
              "noren_requests_total{code=\"200\",endpoint=\"chat_completions\",model=\"m\",outcome=\"" +
              outcome + "\"}") == 1);
    CHECK(noren.metric("noren_client_disconnects_total{phase=\"decode\"}") == (whole ? 0 : 1));
}

TEST_CASE("the engine has seen the end of one request before the next one reaches it") {
    test::Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.workers = 2;
    });
    Peer running = Peer::connect(noren.port());
    running.send(test::long_chat());
    Peer upstream = engine.accept();
    for (int i = 0; i < 300; ++i) {
        Peer waiting = Peer::connect(noren.port());  // on this worker or on the other
        waiting.send(test::long_chat());
        REQUIRE(noren.reaches("noren_queued_requests", 1));
        upstream.receive_until("\"x\"}]}");
        running.close();
        Peer next = engine.accept();
        REQUIRE_FALSE(upstream.is_silent_for(0));
        REQUIRE(upstream.receive().empty());
        running = std::move(waiting);
        upstream = std::move(next);
    }
}
