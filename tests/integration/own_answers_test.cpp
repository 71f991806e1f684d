// What noren says in its own name, on the wire.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/no_descriptors.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using test::Listener;
using test::NorenUnderTest;
using test::Peer;

/// The value of a field in an answer's head; empty if there is none.
std::string field_of(const std::string& answer, const std::string& name) {
    const std::size_t begin = answer.find("\r\n" + name + ": ");
    if (begin == std::string::npos) return {};
    const std::size_t value = begin + name.size() + 4;
    return answer.substr(value, answer.find("\r\n", value) - value);
}

std::string answer_to(const NorenUnderTest& noren, const std::string& request) {
    Peer client = Peer::connect(noren.port());
    client.send(request);
    return client.receive_all();
}

bool is_date(const std::string& text) {
    return text.size() == 29 && text.substr(3, 2) == ", " && text.substr(25) == " GMT";
}

}  // namespace

TEST_CASE("every answer of noren's own has a Date") {
    const Listener engine;
    NorenUnderTest noren(engine.url());
    for (const std::string request :
         {"nonsense\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"}) {
        INFO(request);
        CHECK(is_date(field_of(answer_to(noren, request), "Date")));
    }
    Peer ops = Peer::connect(noren.ops_port());
    ops.send("GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(is_date(field_of(ops.receive_until("\r\n\r\n"), "Date")));
}

TEST_CASE("an engine's answer without a Date gets one, with one keeps it") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    Peer client = Peer::connect(noren.port());
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    Peer asked = engine.accept();
    asked.receive_until("\r\n\r\n");
    asked.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    CHECK(is_date(field_of(client.receive_until("\r\n\r\n"), "Date")));
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    asked.receive_until("\r\n\r\n");
    asked.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nDate: yesterday\r\n\r\n");
    CHECK(field_of(client.receive_until("\r\n\r\n"), "Date") == "yesterday");
}

TEST_CASE("OPTIONS with Max-Forwards: 0 is answered by noren, with more by the engine") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    Peer client = Peer::connect(noren.port());
    client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nCookie: secret\r\n\r\n");
    const std::string own = client.receive_until("\r\n\r\n");
    CHECK(own.starts_with("HTTP/1.1 200 "));
    CHECK(field_of(own, "Allow") == "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    CHECK(own.find("secret") == std::string::npos);
    client.send("OPTIONS /v1 HTTP/1.1\r\nHost: a\r\nMax-Forwards: 1\r\n\r\n");  // the connection goes on
    Peer asked = engine.accept();
    CHECK(field_of(asked.receive_until("\r\n\r\n"), "Max-Forwards") == "0");
    asked.send("HTTP/1.1 204 No Content\r\n\r\n");
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 204 "));
    client.send(
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nContent-Length: 25\r\n\r\n"
        "GET /smuggled HTTP/1.1\r\n\r\n");
    const std::string last = client.receive_all();  // what its body says is never a request
    CHECK(last.starts_with("HTTP/1.1 200 "));
    CHECK(field_of(last, "Connection") == "close");
    CHECK(last.find("HTTP/1.1", 1) == std::string::npos);
    CHECK(noren.metric("noren_inflight_requests") == 0);
}

TEST_CASE("TRACE is refused, however far it is to go, and reflects nothing") {
    const Listener engine;
    NorenUnderTest noren(engine.url());
    for (const std::string forwards : {"", "Max-Forwards: 0\r\n", "Max-Forwards: 5\r\n"}) {
        const std::string answer = answer_to(
            noren, "TRACE / HTTP/1.1\r\nHost: a\r\n" + forwards + "Authorization: Bearer secret\r\n\r\n");
        CHECK(answer.starts_with("HTTP/1.1 405 "));
        CHECK_FALSE(field_of(answer, "Allow").empty());
        CHECK(answer.find("secret") == std::string::npos);
    }
}

TEST_CASE("an answer to HEAD has no body, whatever was wrong with its head") {
    const Listener engine;
    NorenUnderTest noren(engine.url());
    for (const std::string rest :
         {" / HTTP/1.1\r\n\r\n", " / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
          " / HTTP/1.1\r\nHost: a\r\nx: \x01\r\n\r\n", " / HTTP/2.7\r\nHost: a\r\n\r\n"}) {
        INFO(rest);
        const std::string answer = answer_to(noren, "HEAD" + rest);
        CHECK(answer.find("\r\n\r\n") == answer.size() - 4);
        CHECK(std::stoi(field_of(answer, "Content-Length")) > 0);
        CHECK_FALSE(answer_to(noren, "GET" + rest).ends_with("\r\n\r\n"));
    }
    const std::string answer =
        answer_to(noren, "HEAD / HTTP/1.1\r\nHost: a\r\nx: " + std::string(64 * 1024, 'x'));
    CHECK(answer.starts_with("HTTP/1.1 431 "));
    CHECK(answer.ends_with("\r\n\r\n"));
}

TEST_CASE("the bytes of noren's own answers are counted and logged like an engine's") {
    const Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.downstream.max_body = 8; });
    const std::string too_large =
        test::post_request("/v1/messages", "{\"model\":\"m\"}", "Connection: close\r\n");
    std::size_t sent = 0;
    std::vector<std::string> fields;
    for (const std::string& request :
         {too_large, "HEAD" + too_large.substr(4), std::string("GET / HTTP/1.1\r\n\r\n"),
          std::string("HEAD / HTTP/1.1\r\n\r\n")}) {
        const std::string answer = answer_to(noren, request);
        const std::size_t size = answer.size() - answer.find("\r\n\r\n") - 4;
        CHECK((size == 0) == request.starts_with("HEAD"));
        sent += size;
        fields.push_back("\"bytes_to_client\":" + std::to_string(size) + "}");
        CHECK(noren.reaches("noren_sent_bytes_total{side=\"client\"}", static_cast<double>(sent)));
    }
    CHECK(noren.metric("noren_received_bytes_total{side=\"upstream\"}") == 0);
    const std::vector<std::string> log = noren.access_log();
    REQUIRE(log.size() == fields.size());
    for (std::size_t i = 0; i < 2; ++i)  // of those that had an exchange
        CHECK(log[i].find(fields[i]) != std::string::npos);
}

TEST_CASE("one request id: for the engine, for the log and for the client") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    std::vector<std::string> ids;
    for (const std::string given :
         {"", "x-request-id: \r\n", "x-request-id: mine\r\n", "x-request-id: \xc3\xa9\r\n"}) {
        Peer client = Peer::connect(noren.port());
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + given + "\r\n");
        Peer asked = engine.accept();
        ids.push_back(field_of(asked.receive_until("\r\n\r\n"), "x-request-id"));
        CHECK_FALSE(ids.back().empty());
        asked.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        CHECK(field_of(client.receive_all(), "x-request-id") == ids.back());
    }
    CHECK(ids[2] == "mine");
    const std::vector<std::string> log = noren.access_log();
    REQUIRE(log.size() == ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i)
        CHECK(log[i].find("\"request_id\":\"" + ids[i] + "\"") != std::string::npos);
}

TEST_CASE("an engine that is not up is a 503, in whatever way it cannot be reached") {
    Listener deaf(0);
    deaf.fill_backlog();
    for (const std::string& url : {deaf.url(), std::string("http://no-such-host.invalid:8000"),
                                   std::string("unix:/tmp/no-such-engine.sock")}) {
        INFO(url);
        NorenUnderTest noren(url, [](auto& config) {
            config.timeouts.connect = std::chrono::milliseconds(200);
            config.upstream.health_interval = std::chrono::hours(1);
            config.upstream.health_timeout = std::chrono::milliseconds(50);
        });
        REQUIRE(noren.reaches("noren_upstream_up", 0));
        const std::string answer =
            answer_to(noren, test::post_request("/v1/chat/completions", "{}", "Connection: close\r\n"));
        CHECK(answer.starts_with("HTTP/1.1 503 "));
        CHECK(field_of(answer, "x-noren-reason") == "upstream_connect");
        CHECK_FALSE(field_of(answer, "Retry-After").empty());
    }
}

TEST_CASE("an engine that counts as up and cannot be reached is a 502") {
    const test::ClosedPort gone;
    const std::string url = gone.url();
    NorenUnderTest noren(url);  // no probing: it counts as up
    REQUIRE(noren.reaches("noren_upstream_up", 1));
    const std::string answer =
        answer_to(noren, test::post_request("/v1/chat/completions", "{}", "Connection: close\r\n"));
    INFO(answer);
    CHECK(answer.starts_with("HTTP/1.1 502 "));
    CHECK(field_of(answer, "Retry-After").empty());
}

TEST_CASE("that noren has no descriptor left for a connection to the engine is not the engine's fault") {
    Listener engine;
    NorenUnderTest noren(engine.url());
    std::vector<Peer> clients;
    for (const std::string& request : {test::post_request("/v1/chat/completions", "{}"),
                                       std::string("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")}) {
        Peer& client = clients.emplace_back(Peer::connect(noren.port()));
        client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n");  // noren has accepted it
        REQUIRE(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 2"));
        std::string answer;
        {
            const test::NoDescriptors none;
            client.send(request);
            answer = client.receive_until("\r\n\r\n");
        }
        CHECK(answer.starts_with("HTTP/1.1 503 "));
        CHECK(field_of(answer, "x-noren-reason") == "internal_error");
        CHECK_FALSE(field_of(answer, "Retry-After").empty());
    }
    CHECK(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.metric("noren_failures_total{reason=\"internal_error\"}") == 2);
    CHECK(noren.metric("noren_upstream_errors_total{reason=\"connect\"}") == 0);
}

TEST_CASE("an engine that is gone is found out by the first request that meets nobody") {
    auto engine = std::make_unique<Listener>();
    NorenUnderTest noren(engine->url(), [](auto& config) {
        config.upstream.health_interval = std::chrono::hours(1);  // no look by itself
    });
    engine->accept().send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    REQUIRE(noren.reaches("noren_upstream_up", 1));
    engine.reset();
    const std::string request = test::post_request("/v1/chat/completions", "{}", "Connection: close\r\n");
    CHECK_FALSE(answer_to(noren, request).empty());
    REQUIRE(noren.reaches("noren_upstream_up", 0));
    const std::string answer = answer_to(noren, request);
    CHECK(answer.starts_with("HTTP/1.1 503 "));
    CHECK_FALSE(field_of(answer, "Retry-After").empty());
}

TEST_CASE("clients of an engine that is not up are not all told to come back at once") {
    const test::ClosedPort gone;
    const std::string url = gone.url();
    NorenUnderTest noren(
        url, [](auto& config) { config.upstream.health_interval = std::chrono::milliseconds(20); });
    REQUIRE(noren.reaches("noren_upstream_up", 0));
    std::set<std::string> told;
    for (int i = 0; i < 40; ++i) {
        Peer client = Peer::connect(noren.port());
        client.send(test::post_request("/v1/chat/completions", "{}"));
        const std::string answer = client.receive_until("\r\n\r\n");
        REQUIRE(answer.starts_with("HTTP/1.1 503 "));
        CHECK(field_of(answer, "x-noren-reason") == "upstream_connect");
        told.insert(field_of(answer, "Retry-After"));
    }
    CHECK(told.size() > 1);
    for (const std::string& seconds : told)
        CHECK(std::set<std::string>{"4", "5", "6", "7"}.count(seconds) == 1);
}
