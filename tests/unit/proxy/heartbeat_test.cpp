#include "proxy/heartbeat.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/post.hpp>
#include <catch2/catch.hpp>

#include "tests/support/loop.hpp"

namespace noren::proxy {
namespace {

using namespace std::chrono_literals;
using test::run_until;

/// Workers whose loops turn when the test lets them, at the latest before the next beat.
struct Rig {
    explicit Rig(std::size_t workers, const HeartbeatLimits& limits = {1ms, 15})
        : turns(workers, true),
          queues(workers),
          heartbeat(
              io, workers,
              [this](std::size_t worker, net::Posting& posting) {
                  ++beats;
                  queues[worker].push_back(&posting);
                  let_turn();
              },
              [this](std::size_t worker, bool stuck) {
                  changes.push_back(std::to_string(worker) + (stuck ? " stuck" : " turns"));
              },
              limits) {
        heartbeat.start();
    }

    void let_turn() {
        asio::post(io, [this] {
            for (std::size_t worker = 0; worker < queues.size(); ++worker) {
                if (!turns[worker]) continue;
                for (net::Posting* posting : std::exchange(queues[worker], {}))
                    posting->run();
            }
        });
    }
    bool complains(const std::string& text) {
        return run_until(io, [&] { return heartbeat.complaint() == text; });
    }

    asio::io_context io;
    std::vector<bool> turns;
    std::vector<std::vector<net::Posting*>> queues;
    std::size_t beats = 0;
    std::vector<std::string> changes;
    Heartbeat heartbeat;
};

}  // namespace

TEST_CASE("workers that turn are nothing to complain about") {
    Rig rig(3);
    CHECK(run_until(rig.io, [&] { return rig.beats >= 300; }));
    CHECK(rig.heartbeat.complaint().empty());
    CHECK(rig.changes.empty());
}

TEST_CASE("a worker that has not answered the last beats is named until it turns again") {
    Rig rig(3, {1ms, 5});
    rig.turns[1] = false;
    CHECK(run_until(rig.io, [&] { return !rig.heartbeat.complaint().empty(); }));
    CHECK(rig.heartbeat.complaint() == "worker 1 has not turned for 0 s");
    CHECK(rig.queues[1].size() == 1);  // one, however often it was asked
    rig.turns[0] = false;
    CHECK(rig.complains("worker 0 has not turned for 0 s; worker 1 has not turned for 0 s"));
    rig.turns[0] = rig.turns[1] = true;
    rig.let_turn();
    CHECK(rig.complains(""));
    CHECK(rig.changes == std::vector<std::string>{"1 stuck", "0 stuck", "0 turns", "1 turns"});
}

TEST_CASE("a process that was stopped has missed one beat, not many") {
    Rig rig(1, {10ms, 3});
    rig.turns[0] = false;
    rig.io.run_for(5ms);
    std::this_thread::sleep_for(200ms);  // neither this thread nor the worker runs
    rig.turns[0] = true;
    rig.let_turn();
    CHECK(run_until(rig.io, [&] { return rig.beats >= 3; }));
    CHECK(rig.changes.empty());
}

TEST_CASE("the complaint says how long") {
    Rig rig(1, {100ms, 10});
    rig.turns[0] = false;
    CHECK(rig.complains("worker 0 has not turned for 1 s"));
}

}  // namespace noren::proxy
