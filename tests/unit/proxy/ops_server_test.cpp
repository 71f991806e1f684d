// What the ops endpoint says to requests of every kind, and whether it goes on listening after them.

#include "proxy/ops/ops_server.hpp"

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/proxy/ops_rig.hpp"

namespace noren::proxy {
namespace {

using test::body_of;
using test::last_get;
using test::OpsRig;
using test::RawClient;
using test::status_of;

bool holds(const std::string& answer, std::string_view field) {
    return answer.substr(0, answer.find("\r\n\r\n") + 2).find("\r\n" + std::string(field) + "\r\n") !=
           std::string::npos;
}

}  // namespace

TEST_CASE("a page comes with its length and type, and is not to be kept") {
    OpsRig ops;
    const std::string answer = ops.get("/metrics");
    CHECK(status_of(answer) == "HTTP/1.1 200 OK");
    CHECK(holds(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8"));
    CHECK(holds(answer, "Content-Length: 11"));
    CHECK(holds(answer, "Cache-Control: no-store"));
    CHECK(body_of(answer) == "noren_up 1\n");
}

TEST_CASE("a scrape waits for a look at the engine, no other page does") {
    OpsRig ops;
    int looks = 0, asked = 0;
    ops.look = [&] {
        ++looks;
        return [&] {
            if (++asked == 5) ops.metrics = "noren_up 2\n";  // what the look has brought
            return asked == 5;
        };
    };
    CHECK(body_of(ops.get("/-/config")) == "listen: x\n");
    CHECK(looks == 0);
    CHECK(body_of(ops.get("/metrics?x=y")) == "noren_up 2\n");
    CHECK(looks == 1);
    CHECK(asked == 5);
    ops.look = [] { return std::function<bool()>(); };  // nothing to wait for
    CHECK(body_of(ops.get("/metrics")) == "noren_up 2\n");
}

TEST_CASE("a look at the engine that does not end holds up a scrape for so long and no longer") {
    OpsLimits limits;
    limits.engine = std::chrono::milliseconds(30);
    OpsRig ops(limits);
    int asked = 0;
    ops.look = [&] { return [&] { return ++asked < 0; }; };
    CHECK(body_of(ops.get("/metrics")) == "noren_up 1\n");
    CHECK(asked >= 2);
}

TEST_CASE("a connection serves one request after the other, also those sent ahead") {
    OpsRig ops;
    RawClient client(ops.io, ops.port);
    for (int i = 0; i < 3; ++i) {
        client.say("GET /-/config HTTP/1.1\r\nHost: t\r\n\r\n");
        std::string whole;
        for (int j = 0; j <= i; ++j)
            whole += "listen: x\n";
        CHECK(test::run_until(ops.io, [&] {
            std::size_t seen = 0;
            for (std::size_t at = 0; (at = client.heard().find("listen: x\n", at)) != std::string::npos; ++at)
                ++seen;
            return seen == static_cast<std::size_t>(i) + 1;
        }));
    }
    const std::string three = "GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n";
    client.say(three + three + last_get("/-/healthy"));
    const std::string all = client.hears_out();
    std::size_t pages = 0;
    for (std::size_t at = 0; (at = all.find("\r\n\r\nhealthy\n", at)) != std::string::npos; ++at)
        ++pages;
    CHECK(pages == 3);
}

TEST_CASE("HEAD has the head of GET and no body, and the connection goes on") {
    OpsRig ops;
    RawClient client(ops.io, ops.port);
    client.say("HEAD /metrics HTTP/1.1\r\nHost: t\r\n\r\n");
    REQUIRE(client.hears("\r\n\r\n"));
    CHECK(holds(client.heard(), "Content-Length: 11"));
    CHECK(client.heard().find("noren_up") == std::string::npos);
    client.say(last_get("/-/healthy"));
    const std::string all = client.hears_out();
    CHECK(all.ends_with("\r\n\r\nhealthy\n"));
    CHECK(all.find("noren_up") == std::string::npos);
}

TEST_CASE("an HTTP/1.0 client needs no Host and gets the end with the page") {
    OpsRig ops;
    CHECK(body_of(ops.say("GET /metrics HTTP/1.0\r\n\r\n")) == "noren_up 1\n");
    CHECK(status_of(ops.say("GET /metrics HTTP/1.0\r\nHost: a b\r\n\r\n")) == "HTTP/1.0 400 Bad Request");
}

TEST_CASE("an unknown path is a 404 that says where to look, and the connection goes on") {
    OpsRig ops;
    const std::string answer = ops.say("GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n" + last_get("/metrics"));
    CHECK(status_of(answer) == "HTTP/1.1 404 Not Found");
    CHECK(answer.find("not found; / lists what is here\n") != std::string::npos);
    CHECK(answer.ends_with("noren_up 1\n"));
}

TEST_CASE("a wrong method is a 405 that says which are right") {
    OpsRig ops;
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get"}) {
        INFO(method);
        const std::string answer =
            ops.say(std::string(method) + " /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        CHECK(status_of(answer) == "HTTP/1.1 405 Method Not Allowed");
        CHECK(holds(answer, "Allow: GET, HEAD"));
        CHECK(answer.find("noren ctl") != std::string::npos);
    }
}

TEST_CASE("a body is not read: its bytes are never taken for a request") {
    OpsRig ops;
    const std::string hidden = "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n";
    for (const std::string& framing :
         {"Content-Length: " + std::to_string(hidden.size()), std::string("Transfer-Encoding: chunked")}) {
        for (const char* method : {"POST", "GET"}) {
            INFO(method << " with " << framing);
            const std::string answer = ops.say(std::string(method) + " /-/healthy HTTP/1.1\r\nHost: t\r\n" +
                                               framing + "\r\n\r\n" + hidden);
            CHECK(answer.find("noren_up") == std::string::npos);
            CHECK(holds(answer, "Connection: close"));
        }
    }
}

TEST_CASE("what is no valid request is answered with 400 and the end of the connection") {
    OpsRig ops;
    for (const std::string& bytes : std::vector<std::string>{
             // the request line
             "GET /metrics\r\n\r\n",
             "GET  /metrics HTTP/1.1\r\nHost: t\r\n\r\n",
             "GET /metrics HTTP/2.0\r\nHost: t\r\n\r\n",
             "GET /metrics HTTP/1.1 \r\nHost: t\r\n\r\n",
             "GET metrics HTTP/1.1\r\nHost: t\r\n\r\n",
             "GET /met\"rics HTTP/1.1\r\nHost: t\r\n\r\n",
             "GET * HTTP/1.1\r\nHost: t\r\n\r\n",
             "GET http:///metrics HTTP/1.1\r\nHost: t\r\n\r\n",
             "\x16\x03\x01\x02\x01\x01\xfc\x03\x03 a TLS hello\r\n\r\n",
             // the Host field
             "GET /metrics HTTP/1.1\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: a b\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: a/b\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: user@a\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: a:port\r\n\r\n",
             // other fields
             "GET /metrics HTTP/1.1\r\nHost: t\r\nno colon\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: t\r\nName : value\r\n\r\n",
             "GET /metrics HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
         }) {
        INFO(bytes);
        const std::string answer = ops.say(bytes);
        CHECK(status_of(answer) == "HTTP/1.1 400 Bad Request");
        CHECK(holds(answer, "Connection: close"));
        CHECK(body_of(answer) == "not a valid HTTP request\n");
    }
}

TEST_CASE("hosts of every right form are served") {
    OpsRig ops;
    for (const char* host : {"", "noren", "10.1.2.3:9464", "[::1]:9464", "a_b.ns.svc.cluster.local:9464"}) {
        INFO(host);
        const std::string answer =
            ops.say("GET /metrics HTTP/1.1\r\nHost: " + std::string(host) + "\r\nConnection: close\r\n\r\n");
        CHECK(status_of(answer) == "HTTP/1.1 200 OK");
    }
    CHECK(body_of(ops.get("http://noren:9464/metrics")) == "noren_up 1\n");
}

TEST_CASE("nothing that was sent after a refused request is served") {
    OpsRig ops;
    const std::string answer = ops.say(
        "GET /-/healthy HTTP/1.1\r\nHost: a b\r\n\r\n"
        "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(answer.find("noren_up") == std::string::npos);
}

TEST_CASE("a head over 8 KiB is a 431 that arrives even while more is being sent") {
    OpsRig ops;
    const std::string field = "X-Filler: " + std::string(1'000, 'x') + "\r\n";
    const std::string head = "GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n";
    const auto grown_to = [&](std::size_t size) {
        std::string grown = head;
        while (grown.size() < size)
            grown += field;
        return grown + "\r\n";
    };
    CHECK(status_of(ops.say(grown_to(6'000))) == "HTTP/1.1 200 OK");
    for (const std::size_t size : {std::size_t{9'000}, std::size_t{200'000}}) {
        const std::string answer = ops.say(grown_to(size));
        CHECK(status_of(answer) == "HTTP/1.1 431 Request Header Fields Too Large");
        CHECK(body_of(answer) == "the request head is longer than 8 KiB\n");
    }
    const std::string endless_line = ops.say("GET /" + std::string(20'000, 'x'));
    CHECK(status_of(endless_line) == "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST_CASE("a mistake in a query is told; the request itself was a good one") {
    OpsRig ops;
    const std::string answer = ops.get("/-/drain-wait?begin_within=soon");
    CHECK(status_of(answer) == "HTTP/1.1 400 Bad Request");
    CHECK(body_of(answer) == "expected begin_within=SECONDS, 0 to 60, or no query\n");
}

TEST_CASE("an address that is taken is named") {
    OpsRig first;
    CHECK_THROWS_WITH(
        OpsServer(first.io, {"127.0.0.1", first.port, {}}, first.hooks()),
        Catch::Contains("cannot listen on 127.0.0.1:" + std::to_string(first.port) + " for ops"));
}

}  // namespace noren::proxy
