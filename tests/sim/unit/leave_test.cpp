// Clients that leave: noticed at once, by an event and not by looking, and before whatever comes after.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/sim/json_text.hpp"
#include "tests/sim/unit/test_engine.hpp"
#include "tests/support/eventually.hpp"

using namespace sim;
using namespace sim::test;
using ::test::eventually;
using namespace std::chrono_literals;

namespace {

constexpr auto k_patience = 5s;
// Far below the 60 s after which an unnoticed client would be met by chance, far above what a loaded machine
// needs to run two threads in turn.
constexpr auto k_at_once = 1s;

const std::string k_silent = chat("x-sim-ttft-ms: 60000\r\n");

Options options_for_test() {
    Options options;
    options.keep_truth = true;
    return options;
}

std::set<std::string> threads() {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
        all.insert(entry.path());
    return all;
}

/// How often a thread has gone to sleep so far.
std::uint64_t sleeps_of(const std::string& thread) {
    std::ifstream status(thread + "/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("voluntary_ctxt_switches:")) return std::stoull(line.substr(line.find(':') + 1));
    return 0;
}

/// A pipe in the place of the truth file: while it is full, the engine's thread stands still in the middle of
/// writing a truth, and the kernel collects what the clients do.
class Brake {
  public:
    Brake() {
        REQUIRE(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0);
        while (::write(ends_[1], "", 1) == 1) {
        }
    }
    ~Brake() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    Brake(const Brake&) = delete;
    Brake& operator=(const Brake&) = delete;

    /// Opened anew, this is a description of its own, which blocks.
    std::string path() const { return concat("/proc/self/fd/", ends_[1]); }

    void release() const {
        char scrap[4096];
        while (::read(ends_[0], scrap, sizeof scrap) > 0) {
        }
    }

  private:
    int ends_[2] = {-1, -1};
};

}  // namespace

TEST_CASE("a client that leaves is noticed at once, in every phase") {
    Options options = options_for_test();
    options.gpu.max_batch = 1;
    Engine engine(options);
    engine.start();
    std::uint64_t ended = 0;
    const auto leave = [&](Client& client) {
        const TimePoint left = Clock::now();
        client.close();
        REQUIRE(engine.wait_for_truths(++ended, k_patience));
        const Truth truth = engine.truth().back();
        CHECK(truth.outcome == "cancelled");
        REQUIRE(truth.cancel_seen);
        CHECK(*truth.cancel_seen - left < k_at_once);
        CHECK(truth.end - *truth.cancel_seen < k_at_once);
        return truth;
    };

    SECTION("while uploading") {
        Client client(engine.port());
        client.send(concat("POST ", k_chat, " HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"));
        REQUIRE(eventually([&] { return engine.counters().active == 1; }));
        CHECK(leave(client).request_bytes == 1);
    }
    SECTION("in silent prefill") {
        Client client(engine.port());
        client.send(chat("x-sim-ttft-ms: 60000\r\n"));
        REQUIRE(client.read_until("\r\n\r\n"));
        CHECK(leave(client).events.empty());
    }
    SECTION("before a slow head") {
        Client client(engine.port());
        client.send(chat("x-sim-fault: slow-head:60000\r\n"));
        REQUIRE(eventually([&] { return engine.counters().active == 1; }));
        CHECK_FALSE(leave(client).head_sent);
    }
    SECTION("while a plain answer is made") {
        Client client(engine.port());
        client.send(post(k_chat, R"({"messages":[]})", "x-sim-ttft-ms: 60000\r\n"));
        REQUIRE(eventually([&] { return engine.counters().active == 1; }));
        CHECK_FALSE(leave(client).head_sent);
    }
    SECTION("in the middle of a stream, and in the engine's queue behind it") {
        Client running(engine.port());
        running.send(chat("x-sim-tokens: 40000\r\n"));
        REQUIRE(running.read_until("data: "));
        Client queued(engine.port());
        queued.send(chat());
        REQUIRE(queued.read_until("\r\n\r\n"));
        Client next(engine.port());
        next.send(chat("x-request-id: next\r\n"));
        REQUIRE(next.read_until("\r\n\r\n"));

        const Truth gone_waiting = leave(queued);
        CHECK_FALSE(gone_waiting.admitted);
        CHECK(gone_waiting.events.empty());
        const Truth gone_running = leave(running);
        CHECK(gone_running.token_events > 0);
        CHECK(next.read_reply().whole);  // the place in the batch was free
        REQUIRE(engine.wait_for_truths(++ended, k_patience));
    }
    SECTION("with a reading side that has stopped: the write is what fails") {
        Client client(engine.port());
        client.send(chat(
            "x-sim-ttft-ms: 0\r\nx-sim-interval-us: 0\r\nx-sim-tokens: 100000\r\nx-sim-bytes: 2000\r\n"));
        REQUIRE(client.read_until("data: "));
        leave(client);
    }
    CHECK(engine.counters().active == 0);
    CHECK(eventually([&] { return engine.counters().connections == 0; }));
}

TEST_CASE("nobody looks whether clients are still there: the engine sleeps until one leaves") {
    const auto before = threads();
    Engine engine(options_for_test());
    engine.start();
    std::vector<std::string> fresh;
    const auto after = threads();
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(fresh));
    REQUIRE(fresh.size() == 1);

    std::list<Client> clients;
    for (int i = 0; i < 10; ++i) {
        clients.emplace_back(engine.port());
        clients.back().send(k_silent);
        REQUIRE(clients.back().read_until("\r\n\r\n"));
    }
    std::this_thread::sleep_for(20ms);  // the last of them may have a step to go until it waits
    const std::uint64_t asleep = sleeps_of(fresh.front());
    REQUIRE(asleep > 0);
    std::this_thread::sleep_for(200ms);
    CHECK(sleeps_of(fresh.front()) == asleep);

    clients.front().close();
    REQUIRE(engine.wait_for_truths(1, k_patience));
    CHECK(eventually([&] { return sleeps_of(fresh.front()) > asleep; }));
}

TEST_CASE("who has left is gone before who comes after, however late the engine looks") {
    const Brake brake;
    Options options = options_for_test();
    options.truth_file = brake.path();
    Engine engine(options);
    engine.start();
    Client leaver(engine.port());
    Client next(engine.port());
    Client after_next(engine.port());
    for (Client* client : {&next, &after_next}) {
        client->send(get("/health"));
        REQUIRE(client->read_reply().status == 200);
    }
    leaver.send(k_silent);
    REQUIRE(leaver.read_until("\r\n\r\n"));
    CHECK(roundtrip(engine.port(), chat("x-sim-ttft-ms: 0\r\nx-sim-interval-us: 0\r\n")).whole);
    // It is counted right before its truth is written: from here on the engine stands still.
    REQUIRE(eventually([&] { return engine.counters().complete == 1; }));
    CHECK(engine.counters().most_active == 2);

    leaver.close();
    next.send(k_silent);
    after_next.send(k_silent);
    brake.release();
    REQUIRE(eventually([&] { return engine.counters().requests == 4 && engine.counters().active == 2; }));
    CHECK(engine.counters().most_active == 2);
    REQUIRE(engine.wait_for_truths(2, k_patience));
    CHECK(engine.truth().back().outcome == "cancelled");
}

TEST_CASE("who came and left before the engine looked at all is gone before who comes after") {
    const Brake brake;
    Options options = options_for_test();
    options.truth_file = brake.path();
    Engine engine(options);
    engine.start();
    Client last(engine.port());
    last.send(get("/health"));
    REQUIRE(last.read_reply().status == 200);
    CHECK(roundtrip(engine.port(), chat("x-sim-ttft-ms: 0\r\nx-sim-interval-us: 0\r\n")).whole);
    REQUIRE(eventually([&] { return engine.counters().complete == 1; }));
    for (int i = 0; i < 5; ++i) {
        Client hasty(engine.port());
        hasty.send(i % 2 == 0 ? k_silent : k_silent.substr(0, k_silent.size() - 1));
    }
    last.send(k_silent);
    brake.release();
    REQUIRE(eventually([&] { return engine.counters().cancelled == 5; }));
    REQUIRE(eventually([&] { return engine.counters().requests == 7 && engine.counters().active == 1; }));
    CHECK(engine.counters().most_active == 1);
}

TEST_CASE("with one client at a time there is never more than one request, however it ended") {
    Options options = options_for_test();
    options.lone = Pace{.ttft = 0ms, .gap = Duration{0}};
    Engine engine(options);
    engine.start();
    Client kept(engine.port());
    const auto between = [&] {
        kept.send(chat());
        REQUIRE(kept.read_reply().whole);
    };
    for (int round = 0; round < 20; ++round) {
        CHECK(roundtrip(engine.port(), chat()).whole);
        between();
        CHECK(roundtrip(engine.port(), post(k_chat, k_plain)).whole);
        between();
        CHECK(roundtrip(engine.port(), post(k_chat, "{")).status == 400);
        between();
        for (const char* fault :
             {"cut@100", "reset@100", "bad-chunk", "no-final-chunk", "garbage", "early:429", "early:204",
              "close-before-head", "reset-before-head", "error@2", "close-after"}) {
            roundtrip(engine.port(), chat(concat("x-sim-fault: ", fault, "\r\n")));
            between();
        }
    }
    CHECK(engine.counters().most_active == 1);
}
