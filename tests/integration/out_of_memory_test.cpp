// One allocation fails, each in turn: that request may be lost, nothing else is.

#include <string>

#include <catch2/catch.hpp>

#include "tests/sim/engine.hpp"
#include "tests/support/allocation_fault.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using test::NorenUnderTest;
using test::Peer;

std::string ask(std::uint16_t port) {
    Peer client = Peer::connect(port);
    client.send(test::post_request("/v1/chat/completions",
                                   "{\"model\":\"m\",\"stream\":true,\"max_tokens\":70,\"messages\":[{"
                                   "\"role\":\"user\",\"content\":\"x\"}]}",
                                   "Connection: close\r\n"));
    return client.receive_all();
}

bool is_whole(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n");
}

bool is_lost(const std::string& answer) {
    return !answer.ends_with("0\r\n\r\n");
}

}  // namespace

TEST_CASE("an allocation that fails costs one request at most") {
    sim::Options options;
    options.lone = sim::Pace{std::chrono::milliseconds(1), std::chrono::milliseconds(0), false};
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren("http://127.0.0.1:" + std::to_string(engine.port()), [](auto& config) {
        config.admission.max_concurrency = 1;  // a permit that is lost is the end of service
        config.log.access = "off";             // whose thread is not the subject
    });
    REQUIRE(is_whole(ask(noren.port())));
    int lost = 0;
    for (int n = 0;; ++n) {
        INFO("allocation " << n << " fails");
        REQUIRE(n < 5'000);
        test::fail_allocation_in(n);
        const std::string answer = ask(noren.port());
        const bool failed = test::allocation_failed();
        const bool is_fine = is_whole(answer) || is_lost(answer);
        if (!is_fine) INFO(answer);
        REQUIRE(is_fine);
        lost += is_lost(answer);
        REQUIRE(is_whole(ask(noren.port())));
        if (!failed) break;
    }
    CHECK(lost > 20);
    CHECK(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.reaches("noren_client_connections", 0));
    CHECK(noren.metric("noren_running_requests") == 0);
    CHECK(noren.metric("noren_queued_requests") == 0);
    CHECK(noren.metric("noren_awaiting_first_token_requests") == 0);
    CHECK(noren.metric("noren_upstream_connections{state=\"active\"}") == 0);
}
