// No client takes a worker for itself, and none makes noren hold what it does not read.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using test::Listener;
using test::NorenUnderTest;
using test::Peer;

/// How much of the bytes, again and again, the peer takes before it takes nothing for two seconds.
std::size_t sends_until_full(const Peer& peer, const std::string& bytes, std::size_t most) {
    std::size_t sent = 0;
    while (sent < most) {
        const ssize_t n = ::send(peer.descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            sent += static_cast<std::size_t>(n);
            continue;
        }
        pollfd look{peer.descriptor(), POLLOUT, 0};
        if (::poll(&look, 1, 2'000) == 0) break;
    }
    return sent;
}

}  // namespace

TEST_CASE("a client that asks on and on and reads nothing is asked to wait") {
    Listener listener;
    NorenUnderTest noren(listener.url());
    const Peer client = Peer::connect(noren.port());
    // Answered by noren itself, and the answers are longer than the requests.
    std::string requests;
    for (int i = 0; i < 500; ++i)
        requests += "OPTIONS * HTTP/1.1\r\nHost: t\r\nMax-Forwards: 0\r\n\r\n";
    constexpr std::size_t k_most = 256u << 20;
    CHECK(sends_until_full(client, requests, k_most) < k_most);
    // The others are served meanwhile.
    CHECK(test::get(noren.ops_port(), "/-/healthy").size() > 0);
    Peer other = Peer::connect(noren.port());
    other.send("OPTIONS * HTTP/1.1\r\nHost: t\r\nMax-Forwards: 0\r\n\r\n");
    CHECK(other.receive_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("connections are shared evenly by the workers") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.workers = 4; });
    std::vector<Peer> clients;
    for (int i = 0; i < 40; ++i) {
        clients.push_back(Peer::connect(noren.port()));
        REQUIRE(noren.reaches("noren_client_connections", i + 1));
    }
    const auto status = boost::json::parse(test::get(noren.ops_port(), "/-/status"));
    std::uint64_t least = 40, most = 0, all = 0;
    for (const auto& count : status.at("connections_by_worker").as_array()) {
        least = std::min(least, count.to_number<std::uint64_t>());
        most = std::max(most, count.to_number<std::uint64_t>());
        all += count.to_number<std::uint64_t>();
    }
    CHECK(all == 40);
    CHECK(most - least <= 2);
}

TEST_CASE("requests that were sent ahead are all answered, in order, whatever is between them") {
    sim::Engine engine{sim::Options()};
    engine.start();
    NorenUnderTest noren(engine.url());
    Peer client = Peer::connect(noren.port());
    std::string requests;
    for (int i = 0; i < 200; ++i)
        requests += i % 3 == 0 ? "GET /v1/models HTTP/1.1\r\nHost: t\r\nx-request-id: n" + std::to_string(i) +
                                     "\r\n\r\n"
                               : "OPTIONS * HTTP/1.1\r\nHost: t\r\nMax-Forwards: 0\r\nx-request-id: n" +
                                     std::to_string(i) + "\r\n\r\n";
    client.send(requests);
    std::string heard;
    for (int i = 0; i < 200; ++i) {
        const std::string id = "x-request-id: n" + std::to_string(i) + "\r\n";
        if (heard.find(id) == std::string::npos) heard += client.receive_until(id);
        const std::size_t at = heard.find(id);
        REQUIRE(at != std::string::npos);
        heard.erase(0, at);
    }
}

TEST_CASE("small chunks reach the engine as the same bytes, and are counted as what they carry") {
    Listener listener;
    NorenUnderTest noren(listener.url(), [](auto& config) { config.downstream.request_buffer = 4'096; });
    Peer client = Peer::connect(noren.port());
    client.send(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    const std::string body = "{\"model\":\"m\",\"text\":\"" + std::string(50'000, 'y') + "\"}";
    std::string wire;
    for (const char c : body)
        wire += test::chunk(std::string(1, c));
    client.send(wire + "0\r\n\r\n");
    Peer engine = listener.accept();
    const std::string head = engine.receive_until("\r\n\r\n");
    std::string got = head.substr(head.find("\r\n\r\n") + 4);
    while (!got.ends_with("\r\n0\r\n\r\n")) {
        const std::string more = engine.receive();
        REQUIRE(!more.empty());
        got += more;
    }
    CHECK(got == wire + "0\r\n\r\n");
    engine.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    CHECK(client.receive_until("ok").ends_with("ok"));
    REQUIRE(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.metric("noren_received_bytes_total{side=\"client\"}") == static_cast<double>(body.size()));
    CHECK(noren.metric("noren_sent_bytes_total{side=\"upstream\"}") == static_cast<double>(body.size()));
}
