// Those who take more than their share are shed; their neighbours are served.

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

const std::string k_plain = "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string k_ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The engine answers the next request on this connection or a new one.
void serve_one(Listener& engine, Peer& upstream) {
    if (!upstream.is_open()) upstream = engine.accept();
    REQUIRE(upstream.receive_until("\r\n\r\n").ends_with("\r\n\r\n"));
    upstream.send(k_ok);
}

bool is_served(Peer& client, Listener& engine, Peer& upstream) {
    client.send(k_plain);
    serve_one(engine, upstream);
    return client.receive_until("ok").starts_with("HTTP/1.1 200 ");
}

std::string refused(const std::string& reason) {
    return "noren_client_connections_refused_total{reason=\"" + reason + "\"}";
}

/// The head of an upload that never ends by itself.
std::string endless_upload(const std::string& path) {
    return "POST " + path + " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n" +
           "Content-Length: 100000000\r\n\r\n";
}

/// One byte now and then, until noren has something to say; at most 20 s.
std::string trickle(Peer& client) {
    for (int i = 0; i < 2'000; ++i) {
        client.send("x");
        if (!client.is_silent_for(10)) break;
    }
    return client.receive_all();
}

void must_be_fast(noren::config::Config& config) {
    config.downstream.min_upload_rate = 100'000;
    config.downstream.min_upload_window = 300ms;
}

}  // namespace

TEST_CASE("a client with its share of connections is turned away, a neighbour is served, on all workers") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.workers = 3;
        config.downstream.max_connections_per_client = 8;
    });
    std::vector<Peer> flood;
    for (int i = 0; i < 8; ++i)
        flood.push_back(Peer::connect_from("127.0.0.2", noren.port()));
    REQUIRE(noren.reaches("noren_client_connections", 8));
    for (int i = 0; i < 20; ++i)
        CHECK(Peer::connect_from("127.0.0.2", noren.port()).receive().empty());  // closed, not answered
    CHECK(noren.reaches(refused("client_limit"), 20));
    CHECK(noren.metric(refused("limit")) == 0);
    Peer upstream{-1};
    Peer neighbour = Peer::connect_from("127.0.0.3", noren.port());
    CHECK(is_served(neighbour, engine, upstream));
    // What it has open already is served as ever, and a place it gives up is its own again.
    upstream.close();
    CHECK(is_served(flood.front(), engine, upstream));
    upstream.close();
    flood.pop_back();
    REQUIRE(noren.reaches("noren_client_connections", 8));  // seven, and the neighbour's
    Peer next = Peer::connect_from("127.0.0.2", noren.port());
    CHECK(is_served(next, engine, upstream));
    noren.reload([](auto& config) { config.downstream.max_connections_per_client = 0; });
    upstream.close();
    Peer more = Peer::connect_from("127.0.0.2", noren.port());
    CHECK(is_served(more, engine, upstream));
}

TEST_CASE("downstream.max_connections is of the whole process, however many workers there are") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.workers = 4;
        config.downstream.max_connections = 10;
    });
    std::vector<Peer> open;
    for (int i = 0; i < 10; ++i)
        open.push_back(Peer::connect(noren.port()));
    REQUIRE(noren.reaches("noren_client_connections", 10));
    for (int i = 0; i < 20; ++i)
        CHECK(Peer::connect(noren.port()).receive().empty());
    CHECK(noren.reaches(refused("limit"), 20));
    CHECK(noren.reaches("noren_client_connections", 10));
}

TEST_CASE(
    "a body that trickles is ended with 408, in the words of the API, before it has asked for a place") {
    const Listener engine;
    NorenUnderTest noren(engine.url(), must_be_fast);
    const std::pair<std::string, std::string> dialects[] = {
        {"/v1/chat/completions", "{\"error\":{\"message\":\"noren: the request body comes more slowly"},
        {"/v1/messages",
         "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"noren: "},
        {"/api/chat", "{\"error\":\"noren: the request body comes more slowly"},
        {"/generate", "\"error_type\":\"validation\"}"}};
    double failures = 0;
    for (const auto& [path, words] : dialects) {
        INFO(path);
        Peer client = Peer::connect(noren.port());
        client.send(endless_upload(path));
        const std::string answer = trickle(client);
        CHECK(answer.starts_with("HTTP/1.1 408 "));
        CHECK(answer.find("x-noren-reason: body_timeout\r\n") != std::string::npos);
        CHECK(answer.find("Connection: close\r\n") != std::string::npos);
        CHECK(answer.find(words) != std::string::npos);
        CHECK(noren.metric("noren_failures_total{reason=\"body_timeout\"}") == ++failures);
    }
    CHECK_FALSE(engine.is_called(0));
    CHECK(noren.reaches("noren_inflight_requests", 0));
}

TEST_CASE("a body that begins well and trickles when its rest goes straight to the engine is ended too") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        must_be_fast(config);
        config.downstream.request_buffer = 4096;
    });
    Peer client = Peer::connect(noren.port());
    client.send(endless_upload("/v1/chat/completions") + std::string(200'000, 'x'));
    Peer upstream = engine.accept();
    std::size_t taken = 0;
    while (taken < 200'000)
        taken += upstream.receive().size();
    CHECK(trickle(client).starts_with("HTTP/1.1 408 "));
    upstream.receive_all();
    CHECK(noren.reaches("noren_running_requests", 0));
    CHECK(noren.metric("noren_upstream_errors_total{reason=\"reset\"}") == 0);
}

TEST_CASE("an engine that does not take the body is not its client's fault") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        must_be_fast(config);
        config.downstream.request_buffer = 4096;
    });
    Peer client = Peer::connect(noren.port());
    const std::string body(8'000'000, 'x');
    std::thread uploading([&] {
        client.send("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n" + body);
    });
    Peer upstream = engine.accept();
    CHECK(client.is_silent_for(1'000));  // three windows
    std::size_t taken = 0;
    while (taken < body.size()) {
        const std::string more = upstream.receive();
        REQUIRE_FALSE(more.empty());
        taken += more.size();
    }
    uploading.join();
    upstream.send(k_ok);
    CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a client that waits for 100 Continue is not too slow meanwhile") {
    Listener engine;
    NorenUnderTest noren(engine.url(), must_be_fast);
    Peer client = Peer::connect(noren.port());
    client.send(
        "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    Peer upstream = engine.accept();
    upstream.receive_until("\r\n\r\n");
    CHECK(client.is_silent_for(1'000));
    upstream.send("HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 100 "));
    client.send("body");
    CHECK(upstream.receive_until("body") == "body");
    upstream.send(k_ok);
    CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("a head that keeps coming byte by byte has timeouts.head in all, and its neighbour is served") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.timeouts.head = 400ms; });
    Peer slow = Peer::connect(noren.port());
    slow.send("GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ");
    Peer upstream{-1};
    Peer neighbour = Peer::connect(noren.port());
    CHECK(is_served(neighbour, engine, upstream));
    const std::string answer = trickle(slow);
    CHECK(answer.starts_with("HTTP/1.1 408 "));
    CHECK(answer.find("x-noren-reason: head_timeout\r\n") != std::string::npos);
}
