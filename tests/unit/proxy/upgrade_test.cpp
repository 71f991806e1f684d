#include "proxy/http/upgrade.hpp"

#include <string>
#include <string_view>
#include <variant>

#include <catch2/catch.hpp>

#include "proxy/http/forward.hpp"

namespace noren::proxy::http {
namespace {

std::string offer_of(std::string_view fields, std::string_view version = "HTTP/1.1") {
    const std::string text =
        "GET /v1/realtime " + std::string(version) + "\r\nHost: t\r\n" + std::string(fields) + "\r\n";
    const auto parsed = parse_request_head(text);
    REQUIRE(std::holds_alternative<RequestHead>(parsed));
    const auto& head = std::get<RequestHead>(parsed);
    return upgrade_offer(head, std::get<Framing>(request_framing(head)));
}

std::string accepted(std::string_view offer, std::string_view text) {
    const auto parsed = parse_response_head(text);
    REQUIRE(std::holds_alternative<ResponseHead>(parsed));
    return std::string(accepted_upgrade(offer, std::get<ResponseHead>(parsed)));
}

}  // namespace

TEST_CASE("an Upgrade is offered to the engine if Connection says that it is meant for us") {
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: websocket\r\n") == "websocket");
    CHECK(offer_of("connection: keep-alive, uPgrade\r\nUPGRADE: WebSocket\r\n") == "WebSocket");
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: a/1, b\r\nUpgrade: c\r\n") == "a/1, b, c");
    CHECK(offer_of("Upgrade: websocket\r\n").empty());
    CHECK(offer_of("Connection: Upgrade\r\n").empty());
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: \r\n").empty());
    CHECK(offer_of("Connection: close\r\nUpgrade: websocket\r\n").empty());
}

TEST_CASE("what would take the connection out of reach of our checks is never offered") {
    for (const char* protocol : {"h2c", "H2C", "h2", "HTTP/2.0", "http/1.1", "TLS/1.0", "tls", "TLS/1.2"})
        CHECK(offer_of("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: " + std::string(protocol) + "\r\n")
                  .empty());
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: h2c, websocket\r\n") == "websocket");
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: web socket\r\n").empty());
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: a/b/c\r\n").empty());
    CHECK(offer_of("Connection: Upgrade\r\nUpgrade: \"websocket\"\r\n").empty());
}

TEST_CASE("no offer with a body, nor from HTTP/1.0") {
    const std::string_view upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    CHECK(offer_of(std::string(upgrade) + "Content-Length: 1\r\n").empty());
    CHECK(offer_of(std::string(upgrade) + "Transfer-Encoding: chunked\r\n").empty());
    CHECK(offer_of(std::string(upgrade) + "Content-Length: 0\r\n") == "websocket");
    CHECK(offer_of(upgrade, "HTTP/1.0").empty());
}

TEST_CASE("the offer is written anew, and Connection nominates nothing else") {
    const std::string text =
        "GET / HTTP/1.1\r\nHost: t\r\nConnection: Upgrade, X-Mine\r\nX-Mine: 1\r\nUpgrade: h2c, "
        "websocket\r\n\r\n";
    const auto parsed = parse_request_head(text);
    const auto& head = std::get<RequestHead>(parsed);
    const std::string sent = upstream_head(head, {}, "id", upgrade_offer(head, {}));
    CHECK(sent.find("\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n") != std::string::npos);
    CHECK(sent.find("h2c") == std::string::npos);
    CHECK(sent.find("X-Mine") == std::string::npos);
}

TEST_CASE("a 101 counts only if it switches to one of those offered") {
    const std::string_view good = "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n";
    CHECK(accepted("websocket", good) == "websocket");
    CHECK(accepted("foo, websocket", good) == "websocket");
    CHECK(accepted("foo", good).empty());
    CHECK(accepted("", good).empty());
    CHECK(accepted("websocket", "HTTP/1.1 101 x\r\nUpgrade: websocket\r\n\r\n").empty());
    CHECK(accepted("websocket", "HTTP/1.1 101 x\r\nConnection: upgrade\r\n\r\n").empty());
    CHECK(accepted("a, b", "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: a, b\r\n\r\n").empty());
    CHECK(accepted("a", "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: a\r\nUpgrade: a\r\n\r\n").empty());
}

TEST_CASE("the switch is told with the fields that are end to end") {
    const auto parsed = parse_response_head(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Accept: abc=\r\n\r\n");
    CHECK(switching_head(std::get<ResponseHead>(parsed), "websocket", "id-1") ==
          "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: abc=\r\nConnection: Upgrade\r\n"
          "Upgrade: websocket\r\nx-request-id: id-1\r\n\r\n");
}

}  // namespace noren::proxy::http
