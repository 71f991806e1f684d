#pragma once
// An ops endpoint on loopback whose pages say what a test wants them to.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "proxy/ops/ops_server.hpp"
#include "tests/support/raw_client.hpp"

namespace noren::test {

/// A request behind which the connection ends.
inline std::string last_get(const std::string& target) {
    return "GET " + target + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
}

struct OpsRig {
    explicit OpsRig(const proxy::OpsLimits& limits = {})
        : server(io, {"127.0.0.1", 0, {}}, hooks(), limits), port(server.port()) {
        server.start();
    }

    proxy::OpsHooks hooks() {
        return {
            .metrics =
                [this] {
                    ++scrapes;
                    return metrics;
                },
            .status_json = [] { return std::string("{}"); },
            .config_yaml = [] { return std::string("listen: x\n"); },
            .ready = [] { return true; },
            .ready_json = [] { return std::string("{\"ready\":true}"); },
            .drained = [this] { return drained; },
            .draining = [this] { return draining; },
            .complaint = [] { return std::string(); },
            .look_at_engine = [this] { return look ? look() : std::function<bool()>(); },
        };
    }

    /// All that comes back to these bytes until the endpoint ends the connection.
    std::string say(const std::string& bytes) {
        RawClient client(io, port);
        client.say(bytes);
        return client.hears_out();
    }
    /// A page over a connection of its own.
    std::string get(const std::string& target) { return say(last_get(target)); }

    asio::io_context io;
    std::string metrics = "noren_up 1\n";
    int scrapes = 0;
    std::function<std::function<bool()>()> look;  ///< at the engine, before a scrape
    bool draining = false, drained = false;
    proxy::OpsServer server;
    std::uint16_t port;
};

inline std::string status_of(const std::string& answer) {
    return answer.substr(0, answer.find("\r\n"));
}

inline std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : answer.substr(end + 4);
}

}  // namespace noren::test
