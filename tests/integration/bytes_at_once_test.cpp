// Nothing is held back: the engine sends event k+1 only after the client has event k. A proxy that waits for
// more, for whatever reason, makes these tests time out.

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/noren_under_test.hpp"

namespace {

using test::chunk;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;

struct Body {
    std::string name, fields;
    std::vector<std::string> pieces;  ///< of the wire, each sent when the one before has arrived
    std::string end;
    bool closes = false;
};

std::vector<Body> bodies() {
    const std::string token = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    const std::string line = "{\"response\":\"x\",\"done\":false}\n";
    return {
        {"SSE in chunks",
         "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n",
         {chunk(token), chunk(token), chunk(token)},
         "0\r\n\r\n"},
        {"NDJSON in chunks",
         "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n",
         {chunk(line), chunk(line), chunk(line)},
         "0\r\n\r\n"},
        {"plain chunks of one byte",
         "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n",
         {chunk("a"), chunk("b"), chunk("c")},
         "0\r\n\r\n"},
        {"half events",
         "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n",
         {chunk(token.substr(0, 20)), chunk(token.substr(20)), chunk(token)},
         "0\r\n\r\n"},
        {"a length", "Content-Length: 9\r\n", {"abc", "def", "ghi"}, ""},
        {"until the close", "Content-Type: text/event-stream\r\n", {token, token, token}, "", true},
    };
}

}  // namespace

TEST_CASE("event k is with the client before event k+1 is sent") {
    for (const Body& body : bodies()) {
        INFO(body.name);
        Listener engine;
        NorenUnderTest noren(engine.url());
        Peer client = Peer::connect(noren.port());
        client.send(test::post_request("/v1/chat/completions", "{\"stream\":true}"));
        Peer upstream = engine.accept();
        upstream.receive_until("{\"stream\":true}");
        upstream.send("HTTP/1.1 200 OK\r\n" + body.fields + "\r\n");
        const std::string head = client.receive_until("\r\n\r\n");
        REQUIRE(head.starts_with("HTTP/1.1 200 OK\r\n"));
        REQUIRE(head.ends_with("\r\n\r\n"));
        for (const std::string& piece : body.pieces) {
            upstream.send(piece);
            std::string got;
            while (got.size() < piece.size()) {
                const std::string more = client.receive();
                REQUIRE_FALSE(more.empty());
                got += more;
            }
            CHECK(got == piece);
        }
        upstream.send(body.end);
        if (body.closes) upstream.close();
        if (!body.end.empty()) CHECK(client.receive_until("0\r\n\r\n") == body.end);
        if (body.closes) CHECK(client.receive().empty());
    }
}

TEST_CASE("upload bytes reach the engine as they come, whatever the size") {
    Listener engine;
    NorenUnderTest noren(engine.url(), [](auto& config) { config.downstream.request_buffer = 4096; });
    Peer client = Peer::connect(noren.port());
    const std::string piece(100'000, 'p');
    const int pieces = 20;
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: " +
                std::to_string(piece.size() * pieces) + "\r\n\r\n");
    client.send(piece);
    Peer upstream = engine.accept();
    std::size_t received = upstream.receive_until("\r\n\r\n").size();
    REQUIRE(received > 0);
    std::size_t body = 0;
    for (int sent = 1;; ++sent) {
        // Whatever the head's read brought of the body is counted with it: only growth matters.
        while (received + body < piece.size() * static_cast<std::size_t>(sent)) {
            const std::string more = upstream.receive();
            REQUIRE_FALSE(more.empty());
            body += more.size();
        }
        if (sent == pieces) break;
        client.send(piece);
    }
    upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    CHECK(client.receive_until("ok").ends_with("ok"));
}

TEST_CASE("heads of an answer that come cut in two, wherever, are the same heads") {
    const std::string early = "HTTP/1.1 103 Early Hints\r\nLink: </menu>\r\n\r\n";
    const std::string answer =
        early +
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
        "x-request-id: soup\r\n\r\nok";
    Listener engine;
    NorenUnderTest noren(engine.url());
    Peer client = Peer::connect(noren.port());
    std::optional<Peer> upstream;
    std::string uncut;
    for (std::size_t cut = answer.size(); cut > 0; --cut) {
        INFO("cut after " << cut << " bytes");
        client.send(test::post_request("/v1/chat/completions", "{}"));
        if (!upstream) upstream = engine.accept();
        REQUIRE(upstream->receive_until("{}").ends_with("{}"));
        upstream->send(answer.substr(0, cut));
        std::string got;
        if (cut >= early.size()) {
            got = client.receive_until("</menu>\r\n\r\n");  // so noren has read the first part
        } else {
            CHECK(client.is_silent_for(1));
        }
        upstream->send(answer.substr(cut));
        while (!got.ends_with("ok")) {
            const std::string more = client.receive();
            REQUIRE_FALSE(more.empty());
            got += more;
        }
        if (uncut.empty()) uncut = got;
        CHECK(got == uncut);
    }
    CHECK(uncut.starts_with(early));
    CHECK(uncut.ends_with("\r\n\r\nok"));
}
