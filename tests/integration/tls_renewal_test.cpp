// A certificate that is renewed while streams run.

#include <chrono>
#include <string>

#include <catch2/catch.hpp>

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

}  // namespace

TEST_CASE("a renewed certificate is shown to new connections and touches no running stream") {
    const PemFiles files;
    files.issue("tls", {.common_name = "first"});
    files.issue("engine");
    Listener listener;
    NorenUnderTest noren("https://127.0.0.1:" + std::to_string(listener.port()), [&](auto& config) {
        files.serve(config);
        files.trust(config);
        config.log.level = "off";
    });
    const auto shown = [&] {
        return TlsPeer::client(Peer::connect(noren.port()), {.ca = files.ca()}).shown_name();
    };
    CHECK(shown() == "first");
    const double first_end = noren.metric("noren_tls_certificate_expiry_timestamp_seconds{side=\"client\"}");
    CHECK(first_end > 1.7e9);
    CHECK(noren.metric("noren_tls_certificate_expiry_timestamp_seconds{side=\"upstream\"}") == -1);

    TlsPeer client = TlsPeer::client(Peer::connect(noren.port()), {.ca = files.ca()});
    client.send(test::post_request("/v1/chat/completions", "{\"stream\":true}"));
    TlsPeer engine = TlsPeer::server(listener.accept(), {.own = files.issue("engine")});
    engine.receive_until("{\"stream\":true}");
    engine.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    CHECK(client.receive_until("1\r\na\r\n").ends_with("1\r\na\r\n"));

    files.issue("tls", {.until = 48h, .common_name = "second"});
    REQUIRE(noren.reaches("noren_tls_certificate_reloads_total{result=\"ok\"}", 1));
    const auto shows = [&](const std::string& name) {  // the workers hear of it a moment later
        for (int i = 0; i < 1000; ++i)
            if (shown() == name) return true;
        return false;
    };
    CHECK(shows("second"));
    CHECK(noren.metric("noren_tls_certificate_expiry_timestamp_seconds{side=\"client\"}") > first_end + 3600);

    auto broken = files.issue("tls", {.common_name = "third"});
    broken.key = files.issue("other").key;
    files.put("tls", broken);
    REQUIRE(noren.reaches("noren_tls_certificate_reloads_total{result=\"error\"}", 1));
    CHECK(shown() != "first");
    CHECK(test::get(noren.ops_port(), "/-/status").find("the key of another certificate") !=
          std::string::npos);

    engine.send("1\r\nb\r\n0\r\n\r\n");
    CHECK(client.receive_until("0\r\n\r\n") == "1\r\nb\r\n0\r\n\r\n");
    client.send(test::post_request("/v1/chat/completions", "{}"));  // the connection itself lives on, too
    CHECK(noren.reaches("noren_running_requests", 1));
}

TEST_CASE("new rules for the engine hold for connections that were busy, and for who waited, too") {
    const PemFiles files, strangers;
    const test::Certified before = strangers.issue("before"), after = files.issue("after");
    Listener listener;
    NorenUnderTest noren("https://127.0.0.1:" + std::to_string(listener.port()), [&](auto& config) {
        config.upstream.tls.verify = "off";
        config.admission.max_concurrency = 1;
    });
    const std::string ask = test::post_request("/v1/chat/completions", "{}");
    Peer first = Peer::connect(noren.port());
    first.send(ask);
    TlsPeer busy = TlsPeer::server(listener.accept(), {.own = before});
    busy.receive_until("{}");
    Peer second = Peer::connect(noren.port());
    second.send(ask);
    REQUIRE(noren.reaches("noren_queued_requests", 1));

    noren.reload([&](auto& config) {
        files.trust(config);
        config.upstream.tls.verify = "on";
    });
    // The worker has taken it over once it has answered a question that comes behind it.
    Peer asker = Peer::connect(noren.port());
    asker.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");
    REQUIRE(asker.receive_until("\r\n\r\n").starts_with("HTTP/1.1 2"));
    busy.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    CHECK(first.receive_until("\r\n\r\nok").ends_with("\r\n\r\nok"));
    CHECK(busy.receive().empty());  // and no second request
    SECTION("the one that passes now is asked") {
        TlsPeer engine = TlsPeer::server(listener.accept(), {.own = after});
        engine.receive_until("{}");
        engine.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        CHECK(second.receive_until("\r\n\r\nok").starts_with("HTTP/1.1 200 "));
    }
    SECTION("the one that passed before is not") {
        TlsPeer::server(listener.accept(), {.own = before});
        CHECK(second.receive_until("\r\n\r\n").starts_with("HTTP/1.1 502 "));
    }
    CHECK(noren.reaches("noren_inflight_requests", 0));
}
