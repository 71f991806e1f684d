// Whose turn it is decides which limit runs: nobody is cut for what another one delays.

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

const std::string k_expecting =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nExpect: "
    "100-continue\r\n"
    "Content-Length: 2\r\n\r\n";

}  // namespace

TEST_CASE("a client that waits for 100 Continue has its time from then on") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.timeouts.body_idle = 400ms; });
    const bool other_first = GENERATE(true, false);
    Peer client = Peer::connect(noren.port());
    client.send(k_expecting);
    Peer engine = listener.accept();
    engine.receive_until("\r\n\r\n");
    if (other_first) {  // which is no word to go on
        engine.send("HTTP/1.1 102 Processing\r\n\r\n");
        CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 102 "));
    }
    CHECK(client.is_silent_for(1'000));  // more than body_idle: it owes nothing yet
    engine.send("HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(client.receive_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
    SECTION("it goes on") {
        client.send("{}");
        CHECK(engine.receive() == "{}");
        engine.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        CHECK(client.receive_until("ok").ends_with("ok"));
    }
    SECTION("it does not") {
        CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 408 "));
    }
}

TEST_CASE("an answer's head that comes byte by byte has no more than first_byte behind its first") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.timeouts.first_byte = 500ms; });
    Peer client = Peer::connect(noren.port());
    client.send(test::post_request("/v1/chat/completions", "{}"));
    Peer engine = listener.accept();
    engine.receive_until("{}");
    std::thread dribbles([&] {
        engine.send("HTTP/1.1 200 OK\r\nx: ");
        while (engine.is_silent_for(20))  // until noren closes
            engine.send("y");
    });
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 504 "));
    dribbles.join();
}

TEST_CASE("a client that reads all the time is not cut for reading slowly") {
    // The kernel tells that there is room only when a third of its buffer is free, which takes longer here.
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) {
        config.downstream.stall_timeout = 2s;
        config.downstream.buffer = 64 * 1024;
    });
    Peer client = Peer::connect(noren.port());
    const int small = 64 * 1024;
    ::setsockopt(client.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client.send(test::post_request("/v1/chat/completions", "{}"));
    Peer engine = listener.accept();
    engine.receive_until("{}");
    std::thread writes([&] {
        engine.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
        const std::string piece(64 * 1024, 'x');
        while (noren.metric("noren_inflight_requests") == 1 && engine.is_open())
            engine.send(piece);
    });
    std::size_t read = 0;
    const auto end = std::chrono::steady_clock::now() + 7s;
    while (std::chrono::steady_clock::now() < end) {
        const std::size_t n = client.receive(8'192).size();
        read += n;
        if (n == 0) break;
        std::this_thread::sleep_for(20ms);
    }
    CHECK(std::chrono::steady_clock::now() >= end);  // it was never cut
    CHECK(read > 100'000);
    CHECK(noren.metric("noren_failures_total{reason=\"stall_timeout\"}") <= 0);
    client.reset();
    writes.join();
}
