// How soon a client's leaving has taken effect, phase by phase. The figures are printed for people; a machine
// that is busy with other things must not fail here, so the bound is a loose one.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/noren_under_test.hpp"

namespace {

using namespace std::chrono_literals;
using test::NorenUnderTest;
using test::Peer;

constexpr auto k_bound = 5s;

int rounds() {
    const char* wanted = std::getenv("NOREN_LEAVES_PER_PHASE");
    return wanted ? std::atoi(wanted) : 20;
}

std::string half_an_upload(std::size_t size) {
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: " + std::to_string(size) +
           "\r\n\r\n" + std::string(size / 2, ' ');
}

/// Milliseconds from the leaving of each of many clients to something that follows from it.
class Times {
  public:
    explicit Times(const char* phase) : phase_(phase) {}

    void add(std::chrono::nanoseconds time) {
        CHECK(time < k_bound);
        milliseconds_.push_back(std::chrono::duration<double, std::milli>(time).count());
    }

    void print(const char* what) {
        std::sort(milliseconds_.begin(), milliseconds_.end());
        const std::size_t last = milliseconds_.size() - 1;
        std::printf("left %-26s %s after p50 %.2f p99 %.2f max %.2f ms (%zu clients)\n", phase_, what,
                    milliseconds_[last / 2], milliseconds_[last * 99 / 100], milliseconds_[last], last + 1);
    }

  private:
    const char* phase_;
    std::vector<double> milliseconds_;
};

/// By FIN and by RST in turn; the moment right before.
sim::TimePoint leave(Peer& client, int round) {
    const auto left = sim::Clock::now();
    if (round % 2 == 0) {
        client.close();
    } else {
        client.reset();
    }
    return left;
}

void wait_until_active(const sim::Engine& engine) {
    REQUIRE(test::eventually([&] { return engine.counters().active == 1; }));
}

void expect_all_client_closed(NorenUnderTest& noren, std::size_t count) {
    const std::vector<std::string> lines = noren.access_log();
    CHECK(lines.size() == count);
    for (const std::string& line : lines)
        CHECK_THAT(line, Catch::Contains("\"outcome\":\"client_closed\""));
}

double left_in(const NorenUnderTest& noren, const std::string& phase) {
    return noren.metric("noren_client_disconnects_total{phase=\"" + phase + "\"}");
}

}  // namespace

TEST_CASE("the engine hears of a client that left, whatever it was doing", "[leave times]") {
    struct Phase {
        const char* name;
        std::string request;
        std::string answer_so_far;  ///< to wait for before leaving; empty: for the engine to have the request
    };
    const Phase phases[] = {
        {"in a silent prefill", test::long_chat(), "\r\n\r\n"},
        {"waiting for a plain answer", test::long_chat("", false), ""},
        {"in the middle of a stream", test::long_chat("x-sim-ttft-ms: 1\r\n"), "\"content\":\" "},
        {"in a long upload", half_an_upload(1'000'000), ""},
    };
    sim::Engine engine(test::slow_engine());
    engine.start();
    NorenUnderTest noren(engine.url());
    std::uint64_t ended = 0;
    for (const Phase& phase : phases) {
        INFO(phase.name);
        Times cancel_seen(phase.name);
        for (int round = 0; round < rounds(); ++round) {
            Peer client = Peer::connect(noren.port());
            client.send(phase.request);
            if (!phase.answer_so_far.empty()) client.receive_until(phase.answer_so_far);
            wait_until_active(engine);
            const auto left = leave(client, round);
            REQUIRE(engine.wait_for_truths(++ended, 20s));
            const sim::Truth truth = engine.truth().back();
            CHECK(truth.outcome == "cancelled");
            REQUIRE(truth.cancel_seen.has_value());
            cancel_seen.add(*truth.cancel_seen - left);
            REQUIRE(noren.reaches("noren_running_requests", 0));
        }
        cancel_seen.print("the engine saw it");
    }
    test::expect_nothing_held(noren);
    CHECK(left_in(noren, "prefill") == 2 * rounds());
    CHECK(left_in(noren, "decode") == rounds());
    CHECK(left_in(noren, "upload") == rounds());
    expect_all_client_closed(noren, ended);
}

// What follows never reaches the engine, so nobody there sees a cancel: the place at noren is what comes
// free. It is looked for by scraping, which adds the time of a scrape.

TEST_CASE("a client that left the queue, or its upload, gives its place back", "[leave times]") {
    sim::Engine engine(test::slow_engine());
    engine.start();
    NorenUnderTest noren(engine.url(), [](auto& config) { config.admission.max_concurrency = 1; });
    Times upload("in a short upload"), queue("the queue");
    for (int round = 0; round < rounds(); ++round) {
        Peer client = Peer::connect(noren.port());
        client.send(half_an_upload(1000));
        REQUIRE(noren.reaches("noren_inflight_requests", 1));
        const auto left = leave(client, round);
        REQUIRE(noren.reaches("noren_inflight_requests", 0));
        upload.add(sim::Clock::now() - left);
    }
    CHECK(engine.counters().requests == 0);
    Peer running = Peer::connect(noren.port());
    running.send(test::long_chat());
    wait_until_active(engine);
    for (int round = 0; round < rounds(); ++round) {
        Peer client = Peer::connect(noren.port());
        client.send(test::long_chat());
        REQUIRE(noren.reaches("noren_queued_requests", 1));
        const auto left = leave(client, round);
        REQUIRE(noren.reaches("noren_queued_requests", 0));
        queue.add(sim::Clock::now() - left);
    }
    CHECK(engine.counters().requests == 1);
    running.close();
    upload.print("it was forgotten");
    queue.print("its place was free");
    test::expect_nothing_held(noren);
    CHECK(left_in(noren, "upload") == rounds());
    CHECK(left_in(noren, "queued") == rounds());
    expect_all_client_closed(noren, 2 * static_cast<std::size_t>(rounds()) + 1);
}

TEST_CASE("a client that left while noren was connecting gives its permit back", "[leave times]") {
    test::Listener deaf(0);
    deaf.fill_backlog();
    NorenUnderTest noren(deaf.url(), [](auto& config) { config.timeouts.connect = 20s; });
    Times connecting("while noren was connecting");
    for (int round = 0; round < rounds(); ++round) {
        Peer client = Peer::connect(noren.port());
        client.send(test::long_chat());
        REQUIRE(noren.reaches("noren_running_requests", 1));
        const auto left = leave(client, round);
        REQUIRE(noren.reaches("noren_running_requests", 0));
        connecting.add(sim::Clock::now() - left);
    }
    connecting.print("its permit was back");
    test::expect_nothing_held(noren);
    CHECK(left_in(noren, "connect") == rounds());
    expect_all_client_closed(noren, static_cast<std::size_t>(rounds()));
}
