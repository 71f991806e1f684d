// Who is trusted, and what is told of those who are not.

#include <chrono>
#include <string>

#include <catch2/catch.hpp>
#include <openssl/ssl.h>

#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"
#include "tests/support/pem_files.hpp"
#include "tests/support/tls_peer.hpp"

namespace {

using namespace std::chrono_literals;
using test::Certified;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;
using test::PemFiles;
using test::TlsPeer;

using Change = std::function<void(noren::config::Config&)>;

constexpr const char* k_answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct Outcome {
    std::string answer;      ///< to the client, plain
    std::string log;         ///< the access-log line
    std::string engine_saw;  ///< why the engine's handshake failed
    double tls_errors = 0;
};

/// One request to an engine that behaves in this manner.
Outcome ask(const test::TlsManner& manner, const Change& change) {
    Listener listener;
    NorenUnderTest noren("https://127.0.0.1:" + std::to_string(listener.port()), change);
    Peer client = Peer::connect(noren.port());
    client.send(test::post_request("/v1/chat/completions", "{}", "Connection: close\r\n"));
    TlsPeer engine = TlsPeer::server(listener.accept(), manner);
    if (engine.is_open()) {
        const std::string request = engine.receive_until("{}");
        if (!request.empty()) engine.send(k_answer);
    }
    Outcome outcome;
    outcome.answer = client.receive_all();
    outcome.engine_saw = engine.problem();
    outcome.tls_errors = noren.metric("noren_upstream_errors_total{reason=\"tls\"}");
    const auto lines = noren.access_log();
    outcome.log = lines.empty() ? std::string() : lines.back();
    return outcome;
}

void expect_refused(const Outcome& outcome, const std::string& text) {
    CHECK(outcome.answer.starts_with("HTTP/1.1 502 "));
    CHECK(outcome.answer.find("\r\nx-noren-reason: upstream_tls\r\n") != std::string::npos);
    CHECK(outcome.answer.find(text) != std::string::npos);
    CHECK(outcome.log.find("\"reason\":\"upstream_tls\",\"detail\":\"" + text) != std::string::npos);
    CHECK(outcome.tls_errors == 1);
}

void expect_answered(const Outcome& outcome) {
    CHECK(outcome.answer.starts_with("HTTP/1.1 200 "));
    CHECK(outcome.answer.ends_with("\r\n\r\nok"));
    CHECK(outcome.tls_errors == 0);
}

}  // namespace

TEST_CASE("an engine whose certificate does not pass gets no request, and the client is told why") {
    const PemFiles files;
    const PemFiles strangers;
    const Change trusting = [&](auto& config) { files.trust(config); };
    const auto named = [&](const std::string& name) -> Change {
        return [&files, name](auto& config) {
            files.trust(config);
            config.upstream.tls.server_name = name;
        };
    };
    const Certified good = files.issue("good");
    expect_answered(ask({.own = good}, trusting));
    expect_answered(ask({.own = good}, named("localhost")));
    expect_refused(ask({.own = good}, named("engine.svc")),
                   "the engine's certificate is for another host (upstream.tls.server_name)");
    expect_refused(ask({.own = files.issue("elsewhere", {.names = "DNS:engine.svc"})}, trusting),
                   "the engine's certificate is for another host (upstream.tls.server_name)");
    expect_answered(ask({.own = files.issue("elsewhere", {.names = "DNS:engine.svc"})}, named("engine.svc")));
    expect_refused(ask({.own = strangers.issue("x")}, trusting),
                   "the engine's certificate is signed by none of the trusted CAs (upstream.tls.ca)");
    expect_refused(ask({.own = good}, [](auto&) {}),
                   "the engine's certificate is signed by none of the trusted CAs (upstream.tls.ca)");
    expect_refused(ask({.own = files.issue("old", {.until = -1h})}, trusting),
                   "the engine's certificate has expired");
    const Change careless = [](auto& config) { config.upstream.tls.verify = "off"; };
    expect_answered(ask({.own = strangers.issue("x", {.names = "DNS:x", .until = -1h})}, careless));
    CHECK(ask({.own = good, .most_version = TLS1_1_VERSION}, trusting).answer.starts_with("HTTP/1.1 502 "));
}

TEST_CASE("an engine that demands a certificate gets it, or says so") {
    const PemFiles files;
    const Certified own = files.issue("own");
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        const test::TlsManner manner{.own = files.issue("engine"), .ca = files.ca(), .most_version = version};
        expect_answered(ask(manner, [&](auto& config) {
            files.trust(config);
            config.upstream.tls.certificate = files.path("own.crt");
            config.upstream.tls.key = files.path("own.key");
        }));
        const Outcome refused = ask(manner, [&](auto& config) { files.trust(config); });
        CHECK(refused.answer.find("\r\nx-noren-reason: upstream_tls\r\n") != std::string::npos);
        CHECK(refused.answer.find("certificate") != std::string::npos);
        CHECK(refused.tls_errors == 1);
        CHECK(refused.engine_saw == "peer did not return a certificate");
    }
}

TEST_CASE("an engine without TLS, one that hangs up, and one that says nothing") {
    const PemFiles files;
    Listener listener;
    NorenUnderTest noren("https://127.0.0.1:" + std::to_string(listener.port()), [&](auto& config) {
        files.trust(config);
        config.timeouts.connect = 300ms;
    });
    const auto answer = [&](const std::function<void(Peer&)>& engine_does) {
        Peer client = Peer::connect(noren.port());
        client.send(test::post_request("/v1/chat/completions", "{}", "Connection: close\r\n"));
        Peer engine = listener.accept();
        engine_does(engine);
        return client.receive_all();
    };
    CHECK(answer([](Peer& engine) {
              engine.send("HTTP/1.1 400 Bad Request\r\n\r\n");
          }).find("the engine does not speak TLS on this port") != std::string::npos);
    CHECK(answer([](Peer& engine) {
              engine.close();
          }).find("the engine closed the connection in the TLS handshake") != std::string::npos);
    CHECK(noren.reaches("noren_upstream_errors_total{reason=\"tls\"}", 2));
    CHECK(answer([](Peer&) {}).find("\r\nx-noren-reason: upstream_connect\r\n") != std::string::npos);
    CHECK(noren.reaches("noren_upstream_errors_total{reason=\"connect\"}", 1));
    CHECK(noren.reaches("noren_upstream_connects_total{result=\"error\"}", 3));
    CHECK(noren.metric("noren_running_requests") == 0);
}

TEST_CASE("the health probe checks the same, and its reason is in the status") {
    const PemFiles files;
    const PemFiles strangers;
    sim::Engine engine(sim::Options{});
    engine.start();
    NorenUnderTest inner(engine.url(), [&](auto& config) { files.serve(config); });
    const std::string url = "https://127.0.0.1:" + std::to_string(inner.port());
    const auto probing = [](const PemFiles& trusted) -> Change {
        return [&trusted](auto& config) {
            trusted.trust(config);
            config.upstream.health_interval = 20ms;
        };
    };
    NorenUnderTest good(url, probing(files));
    CHECK(good.reaches("noren_upstream_up", 1));
    const std::string status = test::get(good.ops_port(), "/-/status");
    CHECK(status.find("\"up\":true,\"tls\":\"verified\"") != std::string::npos);

    NorenUnderTest bad(url, probing(strangers));
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    std::string found;
    while (found.find("the engine's certificate") == std::string::npos &&
           std::chrono::steady_clock::now() < give_up)
        found = test::get(bad.ops_port(), "/-/status");
    CHECK(found.find("\"last_error\":\"the engine's certificate is signed by none") != std::string::npos);
    CHECK(bad.metric("noren_upstream_up") == 0);
    CHECK(inner.metric("noren_tls_handshakes_total{result=\"certificate\"}") >= 1);
}

TEST_CASE("with client_ca only clients that it has signed come in") {
    const PemFiles files;
    const PemFiles clients;
    Listener engine;
    NorenUnderTest noren(engine.url(), [&](auto& config) {
        files.serve(config);
        config.tls.client_ca = clients.path("ca.crt");
    });
    const auto answer = [&](const Certified& own, int version) {
        TlsPeer client = TlsPeer::client(Peer::connect(noren.port()), {.own = own, .most_version = version});
        client.send("TRACE / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");  // noren answers it itself
        const std::string text = client.receive_all();
        return text.empty() ? client.problem() : text.substr(0, 12);
    };
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        CHECK(answer(clients.issue("client"), version) == "HTTP/1.1 405");
        const std::string missing = answer({}, version);
        CHECK(missing == (version == TLS1_3_VERSION ? "tlsv13 alert certificate required"
                                                    : "sslv3 alert handshake failure"));
        CHECK(answer(files.issue("stranger"), version) == "tlsv1 alert unknown ca");
        CHECK(answer(clients.issue("late", {.until = -1h}), version) == "sslv3 alert certificate expired");
    }
    CHECK(noren.reaches("noren_tls_handshakes_total{result=\"certificate\"}", 6));
    CHECK(noren.reaches("noren_tls_handshakes_total{result=\"ok\"}", 2));
}

TEST_CASE("versions and protocols: TLS 1.2 and newer, http/1.1 only, no renegotiation") {
    const PemFiles files;
    Listener engine;
    NorenUnderTest noren(engine.url(), [&](auto& config) { files.serve(config); });
    NorenUnderTest strict(engine.url(), [&](auto& config) {
        files.serve(config);
        config.tls.min_version = "1.3";
    });
    const auto client = [&](const NorenUnderTest& to, const test::TlsManner& manner) {
        return TlsPeer::client(Peer::connect(to.port()), manner);
    };
    CHECK(client(noren, {}).version() == "TLSv1.3");
    CHECK(client(noren, {.most_version = TLS1_2_VERSION}).version() == "TLSv1.2");
    CHECK_FALSE(client(noren, {.most_version = TLS1_1_VERSION}).is_open());
    CHECK(client(strict, {}).is_open());
    CHECK(client(strict, {.most_version = TLS1_2_VERSION}).problem() == "tlsv1 alert protocol version");

    CHECK(client(noren, {}).alpn().empty());
    CHECK(client(noren, {.alpn = "\x08http/1.1"}).alpn() == "http/1.1");
    CHECK(client(noren, {.alpn = "\x02h2\x08http/1.1"}).alpn() == "http/1.1");
    CHECK(client(noren, {.alpn = "\x02h2"}).problem() == "tlsv1 alert no application protocol");

    TlsPeer insistent = client(noren, {.most_version = TLS1_2_VERSION});
    CHECK_FALSE(insistent.renegotiate());
}
