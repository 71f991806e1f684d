// One allocation fails, each in turn: that request may be lost, nothing else is.

#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/allocation_fault.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using test::NorenUnderTest;
using test::Peer;

struct Answer {
    std::string text;
    bool was_reset = false;
};

Answer ask(std::uint16_t port, const std::string& version) {
    Peer client = Peer::connect(port);
    std::string request = test::chat(70, "Connection: close\r\n");
    request.replace(request.find("HTTP/1.1"), 8, version);
    client.send(request);
    std::string text = client.receive_all();
    return {std::move(text), client.was_reset()};
}

/// To a client of HTTP/1.0 an answer has no chunks: an orderly end is what says that it is whole.
bool is_whole(const Answer& answer, const std::string& version) {
    return answer.text.starts_with("HTTP/1.1 200 ") && !answer.was_reset &&
           answer.text.ends_with(version == "HTTP/1.1" ? "data: [DONE]\n\n\r\n0\r\n\r\n"
                                                       : "data: [DONE]\n\n");
}

/// Nothing, an answer that says so, or one that is visibly cut.
bool is_lost(const Answer& answer, const std::string& version) {
    if (!answer.text.starts_with("HTTP/1.1 200 ")) return true;
    return version == "HTTP/1.1" ? !answer.text.ends_with("0\r\n\r\n") : answer.was_reset;
}

}  // namespace

TEST_CASE("an allocation that fails costs one request at most") {
    sim::Options options;
    options.lone = sim::Pace{std::chrono::milliseconds(1), std::chrono::milliseconds(0), false};
    sim::Engine engine(options);
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) {
        config.admission.max_concurrency = 1;  // a permit that is lost is the end of service
        config.log.access = "off";             // whose thread is not the subject
    });
    const std::string version = GENERATE("HTTP/1.1", "HTTP/1.0");
    REQUIRE(is_whole(ask(noren.port(), version), version));
    int lost = 0;
    for (int n = 0;; ++n) {
        INFO("allocation " << n << " fails");
        REQUIRE(n < 5'000);
        test::fail_allocation_in(n);
        const Answer answer = ask(noren.port(), version);
        const bool failed = test::allocation_failed();
        const bool is_fine = is_whole(answer, version) || is_lost(answer, version);
        INFO(answer.text);
        REQUIRE(is_fine);
        lost += is_lost(answer, version);
        REQUIRE(is_whole(ask(noren.port(), version), version));
        if (!failed) break;
    }
    CHECK(lost > 20);
    CHECK(noren.reaches("noren_client_connections", 0));
    test::expect_nothing_held(noren);
}
