// In steady state a token event takes nothing from the heap on its whole way through noren: read, framing
// checked, written, observed, measured. Counted is every malloc of the worker between two events of a running
// stream.

#include "tests/support/counted_heap.hpp"

#ifdef NOREN_COUNTED_HEAP

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/noren_under_test.hpp"
#include "tests/support/pem_files.hpp"
#include "tests/support/tls_peer.hpp"

namespace {

using test::Listener;
using test::NorenUnderTest;
using test::Peer;
using test::TlsPeer;

// More than two flushes of a stream's own figures into the shared ones, which come every 64 events.
constexpr int k_warm_up = 200;
constexpr int k_events = 1000;

struct Stream {
    std::string name, fields;
    std::string_view event;  ///< # is its number
    bool chunked = true;
    int at_once = 1;  ///< events in one write
};

const std::vector<Stream>& streams() {
    static constexpr std::string_view k_chat =
        R"(data: {"id":"c-1","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":" soup #"},"finish_reason":null}]})"
        "\n\n";
    static constexpr std::string_view k_counted =
        R"(data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":9,"completion_tokens":#}})"
        "\n\n";
    static constexpr std::string_view k_line = R"({"model":"m","response":" soup #","done":false})"
                                               "\n";
    static const std::vector<Stream> all = {
        {"SSE in chunks", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n", k_chat},
        {"SSE in chunks, counted by the engine",
         "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n", k_counted},
        {"SSE in chunks, eight at once", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n",
         k_chat, true, 8},
        {"SSE until the close", "Content-Type: text/event-stream\r\n", k_chat, false},
        {"NDJSON in chunks", "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n", k_line},
        {"NDJSON until the close", "Content-Type: application/x-ndjson\r\n", k_line, false},
        {"a plain body in chunks", "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n",
         "some text #"},
    };
    return all;
}

std::string written(const Stream& stream, int number) {
    std::string bytes;
    for (int i = 0; i < stream.at_once; ++i) {
        std::string event(stream.event);
        event.replace(event.find('#'), 1, std::to_string(number * stream.at_once + i + 1));
        bytes += stream.chunked ? test::chunk(event) : event;
    }
    return bytes;
}

template <typename Client>
void receive(Client& client, std::size_t size) {
    for (std::size_t got = 0; got < size;) {
        const std::string more = client.receive();
        REQUIRE_FALSE(more.empty());
        got += more.size();
    }
}

/// Of k_events writes of the engine, each of which the client has before the next.
template <typename Client, typename Engine>
std::uint64_t allocations(const Stream& stream, Client& client, Engine& engine) {
    engine.send("HTTP/1.1 200 OK\r\n" + stream.fields + "\r\n");
    REQUIRE_FALSE(client.receive_until("\r\n\r\n").empty());
    for (int i = 0; i < k_warm_up + k_events; ++i) {
        if (i == k_warm_up) test::count_worker_allocations();
        const std::string bytes = written(stream, i);
        engine.send(bytes);
        receive(client, bytes.size());
    }
    return test::counted_worker_allocations();
}

const std::string k_request = test::post_request("/v1/chat/completions", R"({"model":"m","stream":true})");

}  // namespace

TEST_CASE("a token event on its whole way through noren allocates nothing") {
    for (const Stream& stream : streams()) {
        INFO(stream.name);
        Listener listener;
        NorenUnderTest noren(listener.url());
        Peer client = Peer::connect(noren.port());
        test::count_worker_allocations();
        client.send(k_request);
        Peer engine = listener.accept();
        engine.receive_until(R"("stream":true})");
        CHECK(test::counted_worker_allocations() > 0);  // it does count: a request is not free
        CHECK(allocations(stream, client, engine) == 0);
    }
}

TEST_CASE("through TLS on both sides a token event allocates nothing but what OpenSSL does for its records") {
    REQUIRE(test::openssl_allocates_apart());
    for (const Stream& stream : streams()) {
        INFO(stream.name);
        const test::PemFiles files;
        const test::Certified shown = files.issue("engine");
        Listener listener;
        NorenUnderTest noren("https://127.0.0.1:" + std::to_string(listener.port()), [&](auto& config) {
            files.serve(config);
            files.trust(config);
        });
        TlsPeer client = TlsPeer::client(Peer::connect(noren.port()), {.ca = files.ca()});
        client.send(k_request);
        TlsPeer engine = TlsPeer::server(listener.accept(), {.own = shown});
        engine.receive_until(R"("stream":true})");
        CHECK(allocations(stream, client, engine) == 0);
    }
}

#endif
