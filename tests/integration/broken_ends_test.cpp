// An answer that is cut never looks whole, and what the engine sent before it broke off is not lost.

#include <chrono>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

const std::string k_events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
const std::string k_chunked = k_events + "Transfer-Encoding: chunked\r\n\r\n";
const std::string k_until_close = k_events + "Connection: close\r\n\r\n";

std::string ask(const std::string& version) {
    std::string request = test::post_request("/v1/chat/completions", "{\"model\":\"m\",\"stream\":true}");
    return request.replace(request.find("HTTP/1.1"), 8, version);
}

std::string event(int number) {
    return "data: {\"n\":" + std::to_string(number) + ",\"text\":\"" + std::string(4'000, 'x') + "\"}\n\n";
}

}  // namespace

TEST_CASE("a client that half-closes in an answer that ends by the close is not told that it was whole") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    const bool chunked = GENERATE(true, false);
    Peer client = Peer::connect(noren.port());
    client.send(ask(chunked ? "HTTP/1.0" : "HTTP/1.1"));
    Peer engine = listener.accept();
    engine.receive_until("true}");
    engine.send(chunked ? k_chunked + test::chunk("data: 1\n\n") : k_until_close + "data: 1\n\n");
    REQUIRE(client.receive_until("data: 1\n\n").ends_with("data: 1\n\n"));
    client.shutdown_write();
    client.receive_all();
    CHECK(client.was_reset());
    CHECK(engine.receive().empty());  // nobody works for a client that is gone
    CHECK(noren.reaches("noren_client_disconnects_total{phase=\"prefill\"}", 1));
    CHECK(noren.reaches("noren_inflight_requests", 0));
}

TEST_CASE("what the engine sent before it broke off reaches a slow client who is then told so by a reset") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    Peer client = Peer::connect(noren.port());
    client.send(ask("HTTP/1.0"));
    Peer engine = listener.accept();
    engine.receive_until("true}");
    const std::string sent(600'000, 'x');  // more than the client's kernel takes by itself
    engine.send(k_chunked + test::chunk(sent));
    engine.close();
    REQUIRE(noren.reaches("noren_upstream_connections{state=\"active\"}", 0));
    const std::string answer = client.receive_all();
    CHECK(test::body_of(answer) == sent);
    CHECK(client.was_reset());
    CHECK(noren.reaches("noren_upstream_errors_total{reason=\"reset\"}", 1));
    CHECK(noren.reaches("noren_inflight_requests", 0));
}

TEST_CASE("what the engine sent before it broke off reaches a client that reads slowly") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.downstream.buffer = 1 << 20; });
    const bool by_reset = GENERATE(true, false);
    Peer client = Peer::connect(noren.port());
    client.send(ask("HTTP/1.1"));
    Peer engine = listener.accept();
    engine.receive_until("true}");
    engine.send(k_chunked);
    // As long as noren takes it: until its own buffer is full behind those of the kernel.
    std::string sent;
    std::thread writes([&] {
        for (int i = 0; i < 20'000 && noren.metric("noren_stalled_requests") == 0; ++i) {
            engine.send(test::chunk(event(i)));
            sent += event(i);
        }
    });
    writes.join();
    REQUIRE(noren.metric("noren_stalled_requests") == 1);
    // What lies unread in noren's kernel is lost with a reset; an orderly end comes behind it.
    if (by_reset) {
        engine.reset();
    } else {
        engine.close();
    }
    std::string got;
    for (std::string more; !(more = client.receive()).empty();)
        got += more;
    CHECK_FALSE(got.ends_with("0\r\n\r\n"));
    CHECK(noren.reaches("noren_upstream_errors_total{reason=\"reset\"}", 1));
    CHECK(noren.reaches("noren_inflight_requests", 0));
    // Every byte that noren had read is there, and it is counted as what it is.
    const double relayed = noren.metric("noren_received_bytes_total{side=\"upstream\"}");
    CHECK(noren.metric("noren_sent_bytes_total{side=\"client\"}") == relayed);
    const std::string body = got.substr(got.find("\r\n\r\n") + 4);
    CHECK(static_cast<double>(body.size()) > relayed);  // chunk lines beside
    if (!by_reset) CHECK(relayed == static_cast<double>(sent.size()));
}

TEST_CASE("while the rest of a broken answer waits for its client, nothing is the engine's any more") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.downstream.buffer = 32 << 20; });
    Peer client = Peer::connect(noren.port());
    client.send(ask("HTTP/1.1"));
    Peer engine = listener.accept();
    engine.receive_until("true}");
    engine.send(k_chunked);
    const std::string megabyte(1 << 20, 'x');
    for (int i = 0; i < 24; ++i)
        engine.send(test::chunk(megabyte));
    engine.close();
    REQUIRE(noren.reaches("noren_running_requests", 0));
    const auto over = std::chrono::steady_clock::now();
    CHECK(noren.metric("noren_inflight_requests") == 1);
    CHECK(noren.metric("noren_awaiting_first_token_requests") == 0);
    CHECK(noren.metric("noren_stalled_requests") == 0);
    std::this_thread::sleep_for(50ms);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - over;
    for (std::string more; !(more = client.receive()).empty();) {
    }
    CHECK(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.metric("noren_write_stall_seconds_sum") >= waited.count());
    CHECK(noren.metric("noren_request_stage_seconds_sum{stage=\"stall\"}") >= waited.count());
}

TEST_CASE("bytes that nobody took were not sent") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.downstream.buffer = 32 << 20; });
    Peer client = Peer::connect(noren.port());
    client.send(ask("HTTP/1.1"));
    Peer engine = listener.accept();
    engine.receive_until("true}");
    engine.send(k_chunked);
    const std::string megabyte(1 << 20, 'x');
    for (int i = 0; i < 24; ++i)
        engine.send(test::chunk(megabyte));
    client.reset();
    REQUIRE(noren.reaches("noren_inflight_requests", 0));
    const double from_engine = noren.metric("noren_received_bytes_total{side=\"upstream\"}");
    const double to_client = noren.metric("noren_sent_bytes_total{side=\"client\"}");
    CHECK(from_engine > 1e6);
    CHECK(to_client < from_engine - 1e5);  // the kernel takes some MiB of the client's
}
