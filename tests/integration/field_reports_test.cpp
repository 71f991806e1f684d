// Faults that users of comparable systems have met (tests/FIELD-REPORTS.md), where no other test shows that
// noren does not have them.

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::chunk;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

const std::string k_stream_head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string k_token = chunk("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n");
const std::string k_ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

std::string chat(const std::string& extra = "") {
    return test::post_request("/v1/chat/completions", "{\"model\":\"m\",\"stream\":true,\"messages\":[]}",
                              extra);
}

}  // namespace

TEST_CASE("comments of the engine are no tokens, but it is not silent while it sends them") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.timeouts.upstream_idle = 6s; });
    Peer client = Peer::connect(noren.port());
    client.send(chat());
    Peer upstream = engine.accept();
    upstream.receive_until("}");
    upstream.send(k_stream_head);
    for (int i = 0; i < 28; ++i) {  // longer than the limit, with seconds for a busy machine between two
        std::this_thread::sleep_for(250ms);
        upstream.send(chunk(":\n\n"));
    }
    CHECK(noren.reaches("noren_awaiting_first_token_requests", 1));
    upstream.send(k_token + "0\r\n\r\n");
    const std::string answer = client.receive_until("0\r\n\r\n");
    CHECK(answer.find("content\":\"x\"") != std::string::npos);
    CHECK(noren.reaches("noren_time_to_first_token_seconds_count{model=\"m\"}", 1));
    CHECK(noren.metric("noren_time_to_first_token_seconds_sum{model=\"m\"}") >= 7.0);
}

TEST_CASE("connections to the engine are kept for as many as ran at once, none is made anew for the next") {
    constexpr int k_cap = 48;
    sim::Options options;
    options.lone = sim::Pace{50ms, 1ms, false};
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = k_cap;
        config.upstream.idle_timeout = 60s;
    });
    const std::string connects = "noren_upstream_connects_total{result=\"ok\"}";
    std::vector<Peer> clients;
    for (int i = 0; i < k_cap; ++i)
        clients.push_back(Peer::connect(noren.port()));
    double first_round = 0;
    for (int round = 0; round < 4; ++round) {
        for (Peer& client : clients)
            client.send(chat("x-sim-tokens: 3\r\n"));
        for (Peer& client : clients)
            REQUIRE(client.receive_until("0\r\n\r\n").ends_with("0\r\n\r\n"));
        REQUIRE(noren.reaches("noren_upstream_connections{state=\"active\"}", 0));
        if (round == 0) first_round = noren.metric(connects);
    }
    CHECK(first_round <= k_cap);
    CHECK(noren.metric(connects) == first_round);
}

TEST_CASE("a body of megabytes that waits in the queue holds nobody up, and arrives whole") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.admission.max_concurrency = 1; });
    Peer first = Peer::connect(noren.port());
    first.send(chat());
    Peer busy = engine.accept();
    busy.receive_until("}");
    busy.send(k_stream_head + k_token);
    first.receive_until("x");
    const std::string body(8'000'000, 'b');
    Peer second = Peer::connect(noren.port());
    std::thread uploading([&] {
        second.send("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 8000000\r\n\r\n" + body);
    });
    REQUIRE(noren.reaches("noren_queued_requests", 1));
    for (int i = 0; i < 100; ++i) {  // what runs is not touched by it
        busy.send(k_token);
        REQUIRE(first.receive_until("}\n\n\r\n").ends_with("\n\n\r\n"));
    }
    busy.send("0\r\n\r\n");
    first.receive_until("0\r\n\r\n");
    std::string arrived = busy.receive_until("\r\n\r\n");
    arrived.erase(0, arrived.find("\r\n\r\n") + 4);
    while (arrived.size() < body.size()) {
        const std::string more = busy.receive();
        REQUIRE_FALSE(more.empty());
        arrived += more;
    }
    uploading.join();
    CHECK(arrived == body);
    busy.send(k_ok);
    CHECK(second.receive_until("ok").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("who waits for 100 Continue is refused by a full queue, not asked for a body first") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.admission.max_queue = 0;
    });
    Peer first = Peer::connect(noren.port());
    first.send(chat());
    REQUIRE(noren.reaches("noren_running_requests", 1));
    Peer second = Peer::connect(noren.port());
    second.send(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
        "Content-Length: 1000000\r\n\r\n");
    const std::string answer = second.receive_all();
    CHECK(answer.starts_with("HTTP/1.1 429 "));
    CHECK(answer.find("\r\nRetry-After: ") != std::string::npos);
    CHECK(answer.find(" 100 ") == std::string::npos);
}

TEST_CASE("the time for a head does not run while a kept connection is idle") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.timeouts.head = 300ms; });
    Peer client = Peer::connect(noren.port());
    Peer upstream{-1};
    for (int i = 0; i < 2; ++i) {
        client.send("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
        if (i == 0) upstream = engine.accept();
        upstream.receive_until("\r\n\r\n");
        upstream.send(k_ok);
        CHECK(client.receive_until("ok").starts_with("HTTP/1.1 200 "));
        if (i == 0) CHECK(client.is_silent_for(1'000));  // three times the limit: still open
    }
}

TEST_CASE("a request that is silent for long keeps its place: nothing but its end gives it back") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.admission.max_concurrency = 1; });
    Peer silent = Peer::connect(noren.port());
    silent.send(chat());
    Peer upstream = engine.accept();
    upstream.receive_until("}");
    Peer waiting = Peer::connect(noren.port());
    waiting.send(chat());
    REQUIRE(noren.reaches("noren_queued_requests", 1));
    CHECK(waiting.is_silent_for(3'000));
    CHECK_FALSE(engine.is_called(0));
    CHECK(noren.reaches("noren_running_requests", 1));
    CHECK(noren.reaches("noren_queued_requests", 1));
    upstream.send(k_ok);
    CHECK(upstream.receive_until("}").find("POST /v1/chat/completions") != std::string::npos);
    upstream.send(k_ok);
    CHECK(waiting.receive_until("ok").starts_with("HTTP/1.1 200 "));
}
