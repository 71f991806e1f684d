// TLS on both sides: the same bytes, at once, and never a clean end for a cut answer.

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"
#include "tests/support/pem_files.hpp"
#include "tests/support/tls_peer.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;
using test::PemFiles;
using test::TlsPeer;

std::string https(std::uint16_t port) {
    return "https://127.0.0.1:" + std::to_string(port);
}

std::string chat(const std::string& extra) {
    return test::chat(3, "x-request-id: fixed\r\n" + extra);
}

/// A noren with TLS in front of a plain engine, and one with TLS on both sides in front of that.
struct Chain {
    explicit Chain(const std::string& engine)
        : inner(engine, [this](auto& config) { files.serve(config); }),
          outer(https(inner.port()), [this](auto& config) {
              files.serve(config);
              files.trust(config);
          }) {}
    TlsPeer client(const test::TlsManner& manner = {}) const {
        return TlsPeer::client(Peer::connect(outer.port()), manner);
    }

    PemFiles files;
    NorenUnderTest inner, outer;
};

/// An engine that the test plays, and a noren with TLS on both sides in front of it.
struct Stage {
    Stage()
        : noren(https(engine.port()), [this](auto& config) {
              files.serve(config);
              files.trust(config);
          }) {}
    TlsPeer client() const { return TlsPeer::client(Peer::connect(noren.port()), {.ca = files.ca()}); }
    TlsPeer accept() { return TlsPeer::server(engine.accept(), {.own = shown}); }

    PemFiles files;
    test::Certified shown = files.issue("engine");
    Listener engine;
    NorenUnderTest noren;
};

}  // namespace

TEST_CASE("answers and uploads through TLS on both sides are the same bytes as without") {
    sim::Options options;
    options.lone = sim::Pace{1ms, 0ms, false};
    options.created = 1;
    sim::Engine engine(options);
    engine.start();
    const Chain chain(engine.url());
    const std::vector<std::string> requests = {
        chat("Connection: close\r\n"),
        chat("Connection: close\r\nx-sim-tokens: 3000\r\nx-sim-bytes: 600\r\n"),
        chat("Connection: close\r\nx-sim-tokens: 100\r\nx-sim-chunk-split: 7\r\n"),
        chat("Connection: close\r\nx-sim-tokens: 20\r\nx-sim-close: 1\r\n"),
        "GET /raw/chunked?n=500&bytes=1000 HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
        test::post_request("/raw/sink", std::string(3'000'000, 'u'), "Connection: close\r\n"),
    };
    for (const std::string& request : requests) {
        INFO(request.substr(0, 200));
        Peer direct = Peer::connect(engine.port());
        direct.send(request);
        const std::string wanted = test::body_of(direct.receive_all());
        for (const int version : {0x0303, 0x0304}) {
            TlsPeer client = chain.client({.ca = chain.files.ca(), .most_version = version});
            REQUIRE(client.problem().empty());
            client.send(request);
            const std::string got = test::body_of(client.receive_all());
            CHECK(got.size() == wanted.size());
            CHECK((got == wanted));
            CHECK(client.ended_cleanly());
        }
    }
    CHECK(chain.outer.metric("noren_upstream_connections{state=\"active\"}") == 0);
}

TEST_CASE("connections are kept on both sides, and the handshake belongs to the connect stage") {
    sim::Options options;
    options.lone = sim::Pace{1ms, 0ms, false};
    sim::Engine engine(options);
    engine.start();
    const Chain chain(engine.url());
    TlsPeer client = chain.client();
    for (int i = 0; i < 5; ++i) {
        client.send(chat(""));
        CHECK(client.receive_until("0\r\n\r\n").find("[DONE]") != std::string::npos);
    }
    CHECK(chain.outer.metric("noren_upstream_connects_total{result=\"ok\"}") == 1);
    CHECK(chain.outer.metric("noren_upstream_connect_seconds_count") == 1);
    CHECK(chain.outer.metric("noren_tls_handshakes_total{result=\"ok\"}") == 1);
    CHECK(chain.inner.metric("noren_tls_handshakes_total{result=\"ok\"}") == 1);
    client.send("HEAD / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    client.receive_all();
    CHECK(client.ended_cleanly());
}

TEST_CASE("with TLS too event k is with the client before event k+1 is sent") {
    Stage stage;
    TlsPeer client = stage.client();
    REQUIRE(client.problem().empty());
    client.send(test::post_request("/v1/chat/completions", "{\"stream\":true}"));
    TlsPeer engine = stage.accept();
    REQUIRE(engine.problem().empty());
    engine.receive_until("{\"stream\":true}");
    engine.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
    const std::string event = "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n";
    for (int k = 0; k < 200; ++k) {
        const std::size_t cut = static_cast<std::size_t>(k) % event.size();  // every split, each a record
        engine.send(event.substr(0, cut));
        engine.send(event.substr(cut));
        std::string got;
        while (got.size() < event.size()) {
            const std::string more = client.receive();
            REQUIRE_FALSE(more.empty());
            got += more;
        }
        CHECK(got == event);
    }
    engine.send("0\r\n\r\n");
    CHECK(client.receive_until("0\r\n\r\n") == "0\r\n\r\n");
}

TEST_CASE("many records that arrive at once are all passed on at once") {
    Stage stage;
    TlsPeer client = stage.client();
    client.send(test::post_request("/v1/chat/completions", "{}"));
    TlsPeer engine = stage.accept();
    engine.receive_until("{}");
    engine.send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n");
    std::string sent, got = test::body_of(client.receive_until("\r\n\r\n"));
    // More than one read takes, in records of all sizes; then silence, with nothing to wake anybody.
    for (std::size_t size = 1; sent.size() < 199'999; size = size * 5 % 16'381) {
        const std::string piece(std::min(size, 199'999 - sent.size()), static_cast<char>('a' + size % 26));
        engine.send(piece);
        sent += piece;
    }
    while (got.size() < sent.size()) {
        const std::string more = client.receive();
        REQUIRE_FALSE(more.empty());
        got += more;
    }
    CHECK((got == sent));
    engine.send("z");
    CHECK(client.receive() == "z");
}

TEST_CASE("an answer that ends with the connection ends cleanly only if the engine ended it so") {
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    Stage stage;
    TlsPeer client = stage.client();
    client.send(test::post_request("/v1/chat/completions", "{}"));
    TlsPeer engine = stage.accept();
    engine.receive_until("{}");
    engine.send(head + "data: one\n\n");
    CHECK(client.receive_until("one\n\n").ends_with("data: one\n\n"));
    SECTION("close_notify") {
        engine.close();
        CHECK(client.receive_all().empty());
        CHECK(client.ended_cleanly());
        client.close();
        CHECK(stage.noren.reaches("noren_inflight_requests", 0));
        CHECK(stage.noren.metric("noren_upstream_errors_total{reason=\"reset\"}") == 0);
    }
    SECTION("close_notify, and the connection stays open") {
        engine.end_writing();
        CHECK(client.receive_all().empty());
        CHECK(client.ended_cleanly());
    }
    SECTION("a bare FIN: somebody may have cut it") {
        engine.cut();
        CHECK(client.receive_all().empty());
        CHECK_FALSE(client.ended_cleanly());
        CHECK(stage.noren.reaches("noren_upstream_errors_total{reason=\"reset\"}", 1));
    }
    SECTION("a reset") {
        engine.reset();
        CHECK(client.receive_all().empty());
        CHECK_FALSE(client.ended_cleanly());
        CHECK(stage.noren.reaches("noren_upstream_errors_total{reason=\"reset\"}", 1));
    }
}

TEST_CASE("a client with TLS leaves: in the handshake, before the answer, in the stream") {
    sim::Options options;
    options.lone = sim::Pace{60s, 20ms, false};
    options.keep_truth = true;
    sim::Engine engine(options);
    engine.start();
    const Chain chain(engine.url());
    const auto leave = [](TlsPeer& client, int how) {
        if (how == 0) client.close();
        if (how == 1) client.cut();
        if (how == 2) client.reset();
        if (how == 3) client.end_writing();
    };
    Peer shy = Peer::connect(chain.outer.port());
    shy.send(std::string("\x16\x03\x01\x02\x00\x01", 6));
    REQUIRE(chain.outer.reaches("noren_client_connections", 1));
    shy.close();
    CHECK(chain.outer.reaches("noren_tls_handshakes_total{result=\"closed\"}", 1));
    CHECK(chain.outer.reaches("noren_client_connections", 0));
    std::uint64_t left = 0;
    for (int how = 0; how < 4; ++how) {
        for (const bool streaming : {false, true}) {
            INFO(how << (streaming ? " in the stream" : " before the answer"));
            TlsPeer client = chain.client();
            client.send(chat(streaming ? "x-sim-ttft-ms: 1\r\nx-sim-tokens: 1000\r\n" : ""));
            if (streaming) {
                client.receive_until("\"content\":\" ");
            } else {
                REQUIRE(test::arrived(engine, left + 1));
            }
            leave(client, how);
            REQUIRE(engine.wait_for_truths(++left, 20s));
            CHECK(engine.truth().back().outcome == "cancelled");
        }
    }
    for (const NorenUnderTest* noren : {&chain.outer, &chain.inner}) {
        CHECK(noren->reaches("noren_inflight_requests", 0));
        CHECK(noren->metric("noren_running_requests") == 0);
        CHECK(noren->metric("noren_upstream_connections{state=\"active\"}") == 0);
        CHECK(noren->metric("noren_upstream_errors_total{reason=\"reset\"}") == 0);
        CHECK(noren->metric("noren_upstream_errors_total{reason=\"tls\"}") == 0);
    }
}
