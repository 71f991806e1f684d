// A connection that has served before may end just as the next request is on its way: which requests are then
// sent once more, and which must not be.

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/noren_under_test.hpp"
#include "tests/support/tls_peer.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;
using test::TlsPeer;

const std::string k_ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const std::string k_first = "{\"first\":1}", k_second = "{\"second\":2}";
constexpr int k_no_second_try = 300;  // milliseconds

std::string post(const std::string& body) {
    return test::post_request("/v1/chat/completions", body);
}

/// The client's first request is there already; its answer leaves the connection for the next.
template <typename Engine>
void serve_first(Engine& engine, Peer& client) {
    engine.receive_until(k_first);
    engine.send(k_ok);
    REQUIRE(client.receive_until("\r\n\r\nok").ends_with("ok"));
}

/// As a worker of the engine that the request kills: the kernel ends what it leaves behind in order.
template <typename Engine>
void die_of_second(Engine& engine, Peer& client) {
    serve_first(engine, client);
    client.send(post(k_second));
    engine.receive_until(k_second);
    engine.close();
}

/// Nothing of it is ever read: its kernel takes a few KiB, then no more.
void read_little(const Peer& engine) {
    const int few = 4096;
    ::setsockopt(engine.descriptor(), SOL_SOCKET, SO_RCVBUF, &few, sizeof few);
}

}  // namespace

TEST_CASE("a POST that the engine had whole is not sent twice when its connection ends without an answer") {
    const bool tls = GENERATE(false, true);
    CAPTURE(tls);
    Listener listener;
    NorenUnderTest noren((tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(listener.port()),
                         [](auto& config) { config.upstream.tls.verify = "off"; });
    Peer client = Peer::connect(noren.port());
    client.send(post(k_first));
    Peer connection = listener.accept();
    if (tls) {
        TlsPeer engine =
            TlsPeer::server(std::move(connection), {.own = test::CertificateAuthority().issue()});
        die_of_second(engine, client);
    } else {
        die_of_second(connection, client);
    }
    CHECK(client.receive_until("\"upstream_reset\"").starts_with("HTTP/1.1 502 "));
    CHECK(!listener.is_called(k_no_second_try));
    test::expect_nothing_held(noren);
}

TEST_CASE("a POST that never came to an engine that ended a used connection in order is sent once more") {
    const bool in_kernel =
        GENERATE(true, false);  // noren's: small enough to be written whole, yet not to arrive
    CAPTURE(in_kernel);
    Listener listener;
    NorenUnderTest noren(listener.url(),
                         [](auto& config) { config.downstream.request_buffer = std::uint64_t{64} << 20; });
    Peer client = Peer::connect(noren.port());
    client.send(post(k_first));
    Peer old = listener.accept();
    read_little(old);
    serve_first(old, client);
    const std::string body(in_kernel ? 256 << 10 : 6 << 20, 'x');
    client.send(post(body + k_second));
    REQUIRE(test::eventually([&] { return !old.is_silent_for(0); }));  // its head is there
    old.shutdown_write();
    Peer engine = listener.accept();
    const std::string request = engine.receive_until(k_second);
    CHECK(test::body_of(request) == body + k_second);
    engine.send(k_ok);
    CHECK(client.receive_until("\r\n\r\nok").starts_with("HTTP/1.1 200 "));
    test::expect_nothing_held(noren);
}

TEST_CASE("a GET is sent once more in any case") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    Peer client = Peer::connect(noren.port());
    client.send(post(k_first));
    Peer old = listener.accept();
    serve_first(old, client);
    client.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n");
    old.receive_until("\r\n\r\n");
    SECTION("by FIN") {
        old.close();
    }
    SECTION("by RST") {
        old.reset();
    }
    Peer engine = listener.accept();
    CHECK(engine.receive_until("\r\n\r\n").starts_with("GET /v1/models HTTP/1.1\r\n"));
    engine.send(k_ok);
    CHECK(client.receive_until("\r\n\r\nok").starts_with("HTTP/1.1 200 "));
    test::expect_nothing_held(noren);
}
