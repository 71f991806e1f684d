// The engine's metrics page through the data port: one look at the engine for all who ask at about the same
// time, and the engine's own bytes for each of them.

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
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

const std::string k_shares = "noren_engine_page_shares_total";
const std::string k_page = "# TYPE tgi_queue_size gauge\ntgi_queue_size 4\n";

std::string fetches(const std::string& result) {
    return "noren_engine_page_fetches_total{result=\"" + result + "\"}";
}

std::string ended(const std::string& code, const std::string& outcome) {
    return "noren_requests_total{code=\"" + code +
           "\",endpoint=\"passthrough\",model=\"unknown\",outcome=\"" + outcome + "\"}";
}

std::string ask(const std::string& fields = "", const std::string& target = "/metrics") {
    return "GET " + target + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n" + fields + "\r\n";
}

Peer asking(const NorenUnderTest& noren, const std::string& fields = "") {
    Peer client = Peer::connect(noren.port());
    client.send(ask(fields));
    return client;
}

std::string answer(const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status +
           "\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

/// An engine that answers the next one who comes with these bytes, and closes; what it was asked.
std::string serve_one(Listener& engine, const std::string& bytes) {
    Peer noren = engine.accept();
    std::string request = noren.receive_until("\r\n\r\n");
    noren.send(bytes);
    return request;
}

std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "no answer: " + answer : answer.substr(end + 4);
}

bool holds(const std::string& answer, const std::string& line) {
    return answer.substr(0, answer.find("\r\n\r\n") + 2).find("\r\n" + line + "\r\n") != std::string::npos;
}

/// Of a key that is in this line of the log.
double number_in(const std::string& line, const std::string& key) {
    return std::stod(line.substr(line.find("\"" + key + "\":") + key.size() + 3));
}

const auto k_long_window = [](auto& config) { config.engine_metrics.window = 60s; };

}  // namespace

TEST_CASE("engine page: those who ask while a look is on share it, over all workers") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.workers = 2; });
    constexpr int k_clients = 20;
    std::vector<Peer> clients;
    for (int i = 0; i < k_clients; ++i)
        clients.push_back(asking(noren, "User-Agent: scraper-" + std::to_string(i) + "\r\n"));
    Peer upstream = engine.accept();
    const std::string request = upstream.receive_until("\r\n\r\n");
    CHECK(request.starts_with("GET /metrics HTTP/1.1\r\n"));
    CHECK(holds(request, "Connection: close"));
    REQUIRE(noren.reaches(k_shares, k_clients - 1));
    upstream.send(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
        "Transfer-Encoding: chunked\r\n\r\n" +
        test::chunk(k_page.substr(0, 5)) + test::chunk(k_page.substr(5)) + "0\r\n\r\n");
    for (Peer& client : clients) {
        const std::string got = client.receive_all();
        CHECK(got.starts_with("HTTP/1.1 200 OK\r\n"));
        CHECK(holds(got, "Content-Type: text/plain; version=0.0.4; charset=utf-8"));
        CHECK(holds(got, "Content-Length: " + std::to_string(k_page.size())));
        CHECK(body_of(got) == k_page);
    }
    CHECK_FALSE(engine.is_called(0));
    CHECK(noren.reaches(fetches("ok"), 1));
    CHECK(noren.reaches(ended("200", "ok"), k_clients));
}

TEST_CASE("engine page: a page that is there already is given out with its age until the window is over") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_long_window);
    Peer first = asking(noren);
    serve_one(engine, answer(k_page));
    CHECK_FALSE(holds(first.receive_all(), "Age: 0"));
    Peer kept_alive = Peer::connect(noren.port());
    for (int i = 0; i < 5; ++i) {
        kept_alive.send("GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n");
        const std::string got = kept_alive.receive_until(k_page);
        CHECK(got.find("\r\nAge: ") != std::string::npos);
        CHECK(body_of(got) == k_page);
    }
    CHECK_FALSE(engine.is_called(0));
    CHECK(noren.reaches(k_shares, 5));
}

TEST_CASE("engine page: however often it is asked for, the engine is asked once in a window") {
    sim::Engine engine(sim::Options{});
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) { config.engine_metrics.window = 200ms; });
    const auto began = std::chrono::steady_clock::now();
    int asked = 0;
    do {
        REQUIRE(test::get(noren.port(), "/metrics").find("vllm:num_requests_waiting") != std::string::npos);
        ++asked;
    } while (asked < 40 || std::chrono::steady_clock::now() < began + 1s);
    const double looks = noren.metric(fetches("ok"));
    const auto windows = (std::chrono::steady_clock::now() - began) / 200ms;
    CHECK(looks <= static_cast<double>(windows) + 1);
    CHECK(looks >= 2);
    CHECK(looks + noren.metric(k_shares) == asked);
}

TEST_CASE("engine page: with no window each request goes to the engine by itself") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.engine_metrics.window = 0s; });
    Peer one = asking(noren);
    Peer other = asking(noren);
    serve_one(engine, answer(k_page));
    serve_one(engine, answer(k_page));
    CHECK(body_of(one.receive_all()) == k_page);
    CHECK(body_of(other.receive_all()) == k_page);
    CHECK(noren.metric(fetches("ok")) == 0);
}

TEST_CASE("engine page: who leaves ends nothing for the others") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    Peer first = asking(noren);
    Peer upstream = engine.accept();
    Peer second = asking(noren);
    REQUIRE(noren.reaches(k_shares, 1));
    first.reset();
    REQUIRE(noren.reaches(ended("000", "client_closed"), 1));
    upstream.receive_until("\r\n\r\n");
    upstream.send(answer(k_page));
    CHECK(body_of(second.receive_all()) == k_page);
}

TEST_CASE("engine page: a request that could be answered otherwise is not mixed up with another") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_long_window);
    Peer plain = asking(noren, "Accept: text/plain\r\n");
    CHECK(holds(serve_one(engine, answer("plain 1\n")), "Accept: text/plain"));
    Peer zipped = asking(noren, "Accept: text/plain\r\nAccept-Encoding: gzip\r\n");
    const std::string bytes("\x1f\x8b\x00\r\n\r\n\xff", 8);
    CHECK(holds(serve_one(engine,
                          "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n"
                          "Content-Length: 8\r\n\r\n" +
                              bytes),
                "Accept-Encoding: gzip"));
    CHECK(body_of(plain.receive_all()) == "plain 1\n");
    const std::string got = zipped.receive_all();
    CHECK(body_of(got) == bytes);
    CHECK(holds(got, "Content-Encoding: gzip"));
    CHECK(body_of(asking(noren, "Accept: text/plain\r\n").receive_all()) == "plain 1\n");
    CHECK(body_of(asking(noren, "Accept: text/plain\r\nAccept-Encoding: gzip\r\n").receive_all()) == bytes);
    CHECK_FALSE(engine.is_called(0));
}

TEST_CASE("engine page: everybody keeps a request id of their own") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_long_window);
    Peer one = asking(noren, "x-request-id: one\r\n");
    CHECK(holds(serve_one(engine, "HTTP/1.1 200 OK\r\nX-Request-Id: one\r\nContent-Length: 0\r\n\r\n"),
                "x-request-id: one"));
    CHECK(holds(one.receive_all(), "x-request-id: one"));
    const std::string other = asking(noren, "x-request-id: other\r\n").receive_all();
    CHECK(holds(other, "x-request-id: other"));
    CHECK(other.find("x-request-id: one") == std::string::npos);
}

TEST_CASE("engine page: the engine's own status is passed on and kept for nobody") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_long_window);
    for (const char* status : {"503 Service Unavailable", "404 Not Found"}) {
        Peer client = asking(noren);
        serve_one(engine, answer("no\n", status));
        const std::string got = client.receive_all();
        CHECK(got.starts_with("HTTP/1.1 " + std::string(status) + "\r\n"));
        CHECK(body_of(got) == "no\n");
    }
    CHECK(noren.reaches(fetches("status"), 2));
    CHECK(noren.metric(k_shares) == 0);
}

TEST_CASE("engine page: what goes wrong is told to all who wait, and the next one tries again") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_long_window);
    const auto [bytes, result, status, reason] =
        GENERATE(table<const char*, const char*, const char*, const char*>(
            {{"", "broken", "502", "upstream_reset"},
             {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "broken", "502", "upstream_reset"},
             {"SSH-2.0-OpenSSH\r\n\r\n", "malformed", "502", "upstream_protocol"}}));
    Peer one = asking(noren);
    Peer upstream = engine.accept();
    Peer other = asking(noren);
    REQUIRE(noren.reaches(k_shares, 1));
    upstream.receive_until("\r\n\r\n");
    upstream.send(bytes);
    upstream.close();
    for (Peer* client : {&one, &other}) {
        const std::string got = client->receive_all();
        CHECK(got.starts_with("HTTP/1.1 " + std::string(status)));
        CHECK(holds(got, "x-noren-reason: " + std::string(reason)));
    }
    CHECK(noren.reaches(fetches(result), 1));
    Peer next = asking(noren);
    serve_one(engine, answer(k_page));
    CHECK(body_of(next.receive_all()) == k_page);
}

TEST_CASE("engine page: an engine that does not answer, or never ends its page, has only so much time") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.engine_metrics.timeout = 100ms; });
    const auto [bytes] = GENERATE(table<std::string>({"", "HTTP/1.1 200 OK\r\n\r\nsome 1\n"}));
    Peer client = asking(noren);
    Peer upstream = engine.accept();
    upstream.receive_until("\r\n\r\n");
    upstream.send(bytes);
    const std::string got = client.receive_all();
    CHECK(got.starts_with("HTTP/1.1 504 "));
    CHECK(holds(got, "x-noren-reason: upstream_timeout"));
    CHECK(noren.reaches(fetches("late"), 1));
    CHECK(upstream.receive_all().empty());  // the connection is closed: the engine may stop
}

TEST_CASE("engine page: an engine that is not there is told as for any other request") {
    const std::string nowhere = Listener().url();
    NorenUnderTest noren(nowhere);
    REQUIRE(noren.reaches("noren_upstream_up", 1));
    const std::string got = asking(noren).receive_all();
    CHECK(got.starts_with("HTTP/1.1 502 "));
    CHECK(holds(got, "x-noren-reason: upstream_connect"));
    CHECK(noren.reaches(fetches("unreachable"), 1));
}

TEST_CASE("engine page: one that is too large to be kept is relayed to each who asks") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.engine_metrics.window = 60s;
        config.engine_metrics.max_size = 4096;
    });
    const std::string large(300'000, 'x');
    Peer client = asking(noren);
    serve_one(engine, answer(large));  // is given up
    serve_one(engine, answer(large));
    CHECK(body_of(client.receive_all()) == large);
    CHECK(noren.reaches(fetches("too_large"), 1));
}

TEST_CASE("engine page: a slow reader gets the whole page and holds up nobody") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.engine_metrics.window = 60s;
        config.engine_metrics.max_size = 64 * 1024 * 1024;
        config.downstream.buffer = 16 * 1024;
    });
    std::string large;
    while (large.size() < 20'000'000)  // more than the kernel holds for a client
        large += "a_family_of_many{series=\"" + std::to_string(large.size()) + "\"} 1\n";
    Peer slow = asking(noren);
    serve_one(engine, answer(large));
    for (int i = 0; i < 3; ++i)
        CHECK(body_of(asking(noren).receive_all()) == large);
    CHECK(noren.reaches("noren_inflight_requests", 1));
    CHECK(body_of(slow.receive_all()) == large);
    CHECK(noren.reaches("noren_inflight_requests", 0));
}

TEST_CASE("engine page: the log tells the engine's time from that of a slow reader") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.downstream.buffer = 16 * 1024; });
    Peer slow = asking(noren);
    Peer asked = engine.accept();
    const auto asked_at = std::chrono::steady_clock::now();
    asked.receive_until("\r\n\r\n");
    std::this_thread::sleep_for(30ms);
    const std::chrono::duration<double, std::milli> fetching = std::chrono::steady_clock::now() - asked_at;
    asked.send(answer(std::string(7'000'000, '#')));
    REQUIRE(noren.reaches(fetches("ok"), 1));
    const auto fetched_at = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(30ms);
    REQUIRE(noren.metric("noren_inflight_requests") == 1);
    const std::chrono::duration<double, std::milli> reading = std::chrono::steady_clock::now() - fetched_at;
    slow.receive_all();
    CHECK(noren.reaches("noren_inflight_requests", 0));
    const std::vector<std::string> log = noren.access_log();
    REQUIRE(log.size() == 1);
    CHECK(number_in(log[0], "prefill_ms") >= fetching.count() - 0.001);
    CHECK(number_in(log[0], "stall_ms") >= reading.count() - 0.001);
    CHECK(number_in(log[0], "connect_ms") == 0);
}

TEST_CASE("engine page: it needs no permit and no place in the queue") {
    sim::Engine engine(sim::Options{});
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;
        config.admission.max_queue = 1;
    });
    const std::string chat = test::chat(2000);
    Peer running = Peer::connect(noren.port());
    running.send(chat);
    running.receive_until("data: ");
    Peer queued = Peer::connect(noren.port());
    queued.send(chat);
    REQUIRE(noren.reaches("noren_queued_requests", 1));
    CHECK(test::get(noren.port(), "/metrics").find("vllm:num_requests_running") != std::string::npos);
    CHECK(noren.reaches("noren_running_requests", 1));
}

TEST_CASE("engine page: other methods and paths go their usual way") {
    Listener engine;
    NorenUnderTest noren(engine.url(), k_long_window);
    Peer head = Peer::connect(noren.port());
    head.send("HEAD /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    CHECK(serve_one(engine, "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n").starts_with("HEAD "));
    CHECK(holds(head.receive_all(), "Content-Length: 42"));
    Peer longer = Peer::connect(noren.port());
    longer.send(ask("", "/metrics/x"));
    serve_one(engine, answer(k_page));
    CHECK(body_of(longer.receive_all()) == k_page);
    CHECK(noren.metric(fetches("ok")) == 0);
}

TEST_CASE("engine page: another path, and a page at another address") {
    Listener engine;
    Listener page;
    NorenUnderTest noren(engine.url(), [&page](auto& config) {
        config.engine_metrics.path = "/prometheus/metrics";
        config.engine_metrics.url = page.url();
    });
    Peer client = Peer::connect(noren.port());
    client.send(ask("", "/prometheus/metrics"));
    CHECK(serve_one(page, answer(k_page)).starts_with("GET /prometheus/metrics "));
    CHECK(body_of(client.receive_all()) == k_page);
    CHECK_FALSE(engine.is_called(0));
    Peer usual = asking(noren);
    serve_one(engine, answer("{}"));
    CHECK(body_of(usual.receive_all()) == "{}");
}

TEST_CASE("engine page: the window is changed by a reload") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.engine_metrics.window = 0s; });
    Peer before = asking(noren);
    serve_one(engine, answer(k_page));
    CHECK(body_of(before.receive_all()) == k_page);
    CHECK(noren.metric(fetches("ok")) == 0);
    noren.reload(k_long_window);
    // A request that comes together with the news of a reload may still be served by the old settings.
    Peer between = Peer::connect(noren.port());
    between.send(ask("", "/health"));
    serve_one(engine, answer("ok"));
    CHECK(body_of(between.receive_all()) == "ok");
    Peer after = asking(noren);
    serve_one(engine, answer(k_page));
    CHECK(body_of(after.receive_all()) == k_page);
    CHECK(body_of(asking(noren).receive_all()) == k_page);
    CHECK(noren.reaches(fetches("ok"), 1));
}

TEST_CASE("engine page: a noren that ends in the middle of a look leaves nothing behind") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    Peer client = asking(noren);
    Peer upstream = engine.accept();
    upstream.receive_until("\r\n\r\n");
    noren.stop();
    const std::string got = client.receive_all();
    CHECK((got.empty() || got.starts_with("HTTP/1.1 503 ")));
}
