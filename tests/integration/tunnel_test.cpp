// WebSocket and its like: after a 101 the bytes cross as they come, both ways, until both sides have ended.

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

const std::string k_ask =
    "GET /v1/realtime HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const std::string k_switch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const std::string k_requests =
    "noren_requests_total{code=\"101\",endpoint=\"passthrough\",model=\"unknown\",outcome=";

struct Tunnel {
    Peer client, engine;
};

/// early: sent by the client behind its request, before it knows whether there will be a tunnel.
Tunnel open(NorenUnderTest& noren, Listener& listener, const std::string& early = "",
            const std::string& first = "") {
    Peer client = Peer::connect(noren.port());
    client.send(k_ask + early);
    Peer engine = listener.accept();
    const std::string asked = engine.receive_until("\r\n\r\n");
    REQUIRE(asked.find("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n") != std::string::npos);
    REQUIRE(asked.ends_with("\r\n\r\n"));  // nothing of the client's yet
    engine.send(k_switch + first);
    const std::string told = client.receive_until("\r\n\r\n" + first);
    REQUIRE(told.starts_with("HTTP/1.1 101 "));
    REQUIRE(told.ends_with("\r\n\r\n" + first));
    return {std::move(client), std::move(engine)};
}

std::string receive_exactly(Peer& peer, std::size_t size) {
    std::string all;
    while (all.size() < size) {
        const std::string more = peer.receive(size - all.size());
        if (more.empty()) break;
        all += more;
    }
    return all;
}

std::string noise(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 1;
    for (char& byte : bytes)
        byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    return bytes;
}

}  // namespace

TEST_CASE("a tunnel carries what either side sends, at once, those bytes included that came early") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    Tunnel tunnel = open(noren, listener, "early", "first");
    CHECK(receive_exactly(tunnel.engine, 5) == "early");
    CHECK(noren.reaches("noren_tunnels", 1));
    CHECK(noren.reaches("noren_upgrades_total{protocol=\"websocket\"}", 1));
    CHECK(noren.metric("noren_running_requests") == 0);  // no permit: what generates is POSTed
    for (int i = 0; i < 20; ++i) {
        tunnel.client.send("ping");
        CHECK(receive_exactly(tunnel.engine, 4) == "ping");
        tunnel.engine.send("pong!");
        CHECK(receive_exactly(tunnel.client, 5) == "pong!");
    }
    tunnel.engine.shutdown_write();  // one end at a time
    CHECK(tunnel.client.receive().empty());
    tunnel.client.send("still there");
    CHECK(receive_exactly(tunnel.engine, 11) == "still there");
    tunnel.client.close();
    CHECK(tunnel.engine.receive().empty());
    CHECK(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.metric("noren_tunnels") == 0);
    CHECK(noren.reaches(k_requests + "\"ok\"}", 1));
    CHECK(noren.metric("noren_sent_bytes_total{side=\"upstream\"}") == 5 + 20 * 4 + 11);
    CHECK(noren.metric("noren_received_bytes_total{side=\"client\"}") == 5 + 20 * 4 + 11);
    CHECK(noren.metric("noren_sent_bytes_total{side=\"client\"}") == 5 + 20 * 5);
    CHECK(noren.metric("noren_received_bytes_total{side=\"upstream\"}") == 5 + 20 * 5);
}

TEST_CASE("a tunnel holds back a side that is faster than the other, and loses nothing") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    Tunnel tunnel = open(noren, listener);
    const std::string bytes = noise(20'000'000);
    std::thread up([&] { tunnel.client.send(bytes); });
    std::thread down([&] { tunnel.engine.send(bytes); });
    std::string at_engine;
    std::thread engine_reads([&] { at_engine = receive_exactly(tunnel.engine, bytes.size()); });
    const std::string at_client = receive_exactly(tunnel.client, bytes.size());
    for (std::thread* thread : {&up, &down, &engine_reads})
        thread->join();
    CHECK(at_client == bytes);
    CHECK(at_engine == bytes);
}

TEST_CASE("a broken side breaks the tunnel") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    SECTION("the engine") {
        Tunnel tunnel = open(noren, listener);
        tunnel.engine.reset();
        CHECK(tunnel.client.receive().empty());
        CHECK(tunnel.client.was_reset());  // an orderly end would be the end of what the engine had to say
        CHECK(noren.reaches("noren_inflight_requests", 0));
        CHECK(noren.reaches(k_requests + "\"upstream_error\"}", 1));
    }
    SECTION("the client") {
        Tunnel tunnel = open(noren, listener);
        tunnel.client.reset();
        CHECK(tunnel.engine.receive().empty());
        CHECK(tunnel.engine.was_reset());
        CHECK(noren.reaches("noren_inflight_requests", 0));
        CHECK(noren.reaches(k_requests + "\"client_closed\"}", 1));
    }
    SECTION("the engine, after it had said all it had to say") {
        Tunnel tunnel = open(noren, listener);
        tunnel.engine.shutdown_write();
        CHECK(tunnel.client.receive().empty());
        CHECK_FALSE(tunnel.client.was_reset());
        tunnel.engine.reset();
        CHECK(noren.reaches("noren_inflight_requests", 0));
        CHECK(noren.reaches(k_requests + "\"upstream_error\"}", 1));
    }
    SECTION("the client, after it had said all it had to say") {
        Tunnel tunnel = open(noren, listener);
        tunnel.client.shutdown_write();
        CHECK(tunnel.engine.receive().empty());
        CHECK_FALSE(tunnel.engine.was_reset());
        tunnel.client.reset();
        CHECK(noren.reaches("noren_inflight_requests", 0));
        CHECK(noren.reaches(k_requests + "\"client_closed\"}", 1));
    }
    CHECK(noren.metric("noren_tunnels") == 0);
}

TEST_CASE("an idle tunnel is closed after timeouts.tunnel_idle, one that moves is not") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.timeouts.tunnel_idle = 200ms; });
    Tunnel tunnel = open(noren, listener);
    for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(50ms);
        (i % 2 ? tunnel.client : tunnel.engine).send("x");
        CHECK(receive_exactly(i % 2 ? tunnel.engine : tunnel.client, 1) == "x");
    }
    CHECK(tunnel.client.receive().empty());
    CHECK(tunnel.engine.receive().empty());
    CHECK(noren.reaches("noren_failures_total{reason=\"tunnel_timeout\"}", 1));
}

TEST_CASE("without a 101 there is no tunnel: what follows is read as a request") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    Peer client = Peer::connect(noren.port());
    client.send(k_ask + "GET /second HTTP/1.1\r\nHost : bad\r\n\r\n");
    Peer engine = listener.accept();
    engine.receive_until("\r\n\r\n");
    engine.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    CHECK(client.receive_until("okHTTP/1.1 400").find("okHTTP/1.1 400 ") != std::string::npos);
    CHECK(engine.is_silent_for(50));
}

TEST_CASE("a switch to what nobody offered is the engine's fault") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    Peer client = Peer::connect(noren.port());
    client.send(k_ask);
    Peer engine = listener.accept();
    engine.receive_until("\r\n\r\n");
    engine.send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nraw");
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 502 "));
    CHECK(noren.reaches("noren_upstream_errors_total{reason=\"protocol\"}", 1));
}

TEST_CASE("the end of a drain breaks tunnels off, its begin does not") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.drain.timeout = 300ms; });
    Tunnel tunnel = open(noren, listener);
    noren.terminate();
    REQUIRE(noren.reaches("noren_draining", 1));
    tunnel.client.send("ping");
    CHECK(receive_exactly(tunnel.engine, 4) == "ping");
    CHECK(tunnel.engine.receive().empty());
    CHECK(tunnel.client.receive().empty());
}
