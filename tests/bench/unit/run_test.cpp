// The whole tool against a simulated engine in this process, over real sockets.

#include <algorithm>
#include <map>

#include <catch2/catch.hpp>

#include "tests/bench/load/runner.hpp"
#include "tests/sim/engine.hpp"

namespace {

using namespace load;
using std::chrono::milliseconds;

struct Server {
    sim::Engine engine;

    explicit Server(sim::Options options = quick()) : engine(std::move(options)) { engine.start(); }

    static sim::Options quick() {
        sim::Options options;
        options.lone = sim::Pace{milliseconds(2), milliseconds(1), false};
        return options;
    }
    std::string url() const { return engine.url(); }
};

Options options_for(const Server& server, std::uint64_t requests, std::uint32_t clients = 2) {
    Options options;
    options.urls = {server.url()};
    options.labels = {"A"};
    options.stages = {{clients, milliseconds(0)}};
    options.requests = requests;
    options.max_tokens = {8, 8};
    return options;
}

Outcome run_quietly(const Options& options) {
    return run(options, [](const Progress&) {});
}

std::map<std::string, int> errors_of(const Outcome& outcome) {
    std::map<std::string, int> errors;
    for (const Result& result : outcome.results)
        ++errors[result.error];
    return errors;
}

}  // namespace

TEST_CASE("every API, streamed and not, is read whole and checked to the byte") {
    const Server server;
    for (const char* name :
         {"chat", "completions", "responses", "messages", "tgi", "ollama", "llamacpp", "triton"}) {
        for (const bool stream : {true, false}) {
            INFO(name << (stream ? " streamed" : " plain"));
            Options options = options_for(server, 6);
            options.api = api_of(name).value();
            options.stream = stream;
            options.max_tokens = {1, 9};
            const Outcome outcome = run_quietly(options);
            REQUIRE(outcome.results.size() == 6);
            for (const Result& result : outcome.results) {
                CHECK(result.error == "");
                CHECK(result.detail == "");
                CHECK(result.ok());
                CHECK(result.checked);
                CHECK(result.body_checked);
                CHECK(result.ttft().has_value() == stream);
                if (stream) CHECK(result.ttft().value() >= 0.002);
                if (stream) CHECK(result.events >= result.tokens);
            }
            std::uint64_t events = 0;
            for (const Result& result : outcome.results)
                events += result.events > 0 ? result.events - 1 : 0;
            CHECK(outcome.times[0][0].gaps.count() <= events);  // events in the first read have no gap
        }
    }
}

TEST_CASE("lean: events are timed by their stamps and bodies checked by their hash, whatever the API") {
    const Server server;
    for (const char* name :
         {"chat", "completions", "responses", "messages", "tgi", "ollama", "llamacpp", "triton"}) {
        INFO(name);
        Options options = options_for(server, 6);
        options.api = api_of(name).value();
        options.lean = true;
        const Outcome outcome = run_quietly(options);
        REQUIRE(outcome.results.size() == 6);
        for (const Result& result : outcome.results) {
            CHECK(result.error == "");
            CHECK(result.ok());
            CHECK(result.body_checked);
            CHECK(result.events == 8);
        }
        const Histogram& delays = outcome.times[0][0].delays;
        CHECK(delays.count() == 6 * 8);
        CHECK(delays.least() > 0);   // the same clock on both sides
        CHECK(delays.most() < 100);  // seconds: it is a delay, not a time of day
    }
    Options options = options_for(server, 2);
    options.lean = true;
    options.headers = {"x-sim-close: 1"};  // no trailer, so no hash: told, as some relays drop trailers
    for (const Result& result : run_quietly(options).results) {
        CHECK(result.ok());
        CHECK_FALSE(result.body_checked);
    }
}

TEST_CASE("the clients of a stage begin spread over the time given") {
    const Server server;
    Options options = options_for(server, 4, 4);
    options.spread = milliseconds(80);
    options.headers = {"x-sim-ttft-ms: 200"};  // so that nobody asks a second time before all have begun
    const TimePoint before = Clock::now();
    const Outcome outcome = run_quietly(options);
    REQUIRE(outcome.results.size() == 4);
    std::vector<TimePoint> starts;
    for (const Result& result : outcome.results)
        starts.push_back(result.start);
    std::sort(starts.begin(), starts.end());
    for (std::size_t i = 0; i < starts.size(); ++i)
        CHECK(starts[i] >= before + milliseconds(20) * i);
}

TEST_CASE("each way an answer can go wrong has its name") {
    const Server server;
    const std::map<std::string, std::string> cases = {
        {"reset@150", "cut"},
        {"cut@150", "cut"},
        {"no-final-chunk", "cut"},
        {"bad-chunk", "protocol"},
        {"garbage", "protocol"},
        {"huge-head", "protocol"},
        {"error@3", "engine_error"},
        {"close-before-head", "no_answer"},
        {"reset-before-head", "no_answer"},
        {"stall@150", "silence_timeout"},
        {"slow-head:60000", "first_byte_timeout"},
    };
    for (const auto& [fault, error] : cases) {
        INFO(fault);
        Options options = options_for(server, 3);
        options.headers = {"x-sim-fault: " + fault};
        // Short only where it must run out: a busy machine is late with everything.
        if (error == "silence_timeout") options.silence_timeout = milliseconds(100);
        if (error == "first_byte_timeout") options.first_byte_timeout = milliseconds(150);
        CHECK(errors_of(run_quietly(options)) == std::map<std::string, int>{{error, 3}});
    }
    Options options = options_for(server, 2);
    options.headers = {"x-sim-interval-us: 50000"};
    options.max_tokens = {1000, 1000};
    options.total_timeout = milliseconds(200);
    CHECK(errors_of(run_quietly(options)) == std::map<std::string, int>{{"total_timeout", 2}});
}

TEST_CASE("nobody there") {
    Options options;
    {
        const Server gone;
        options = options_for(gone, 3);
        options.refused_pause = milliseconds(1);
    }
    const Outcome outcome = run_quietly(options);
    CHECK(errors_of(outcome) == std::map<std::string, int>{{"connect", 3}});
    CHECK(outcome.results[0].detail == "Connection refused");
    options.urls = {"unix:/dev/null/socket"};
    CHECK(errors_of(run_quietly(options)) == std::map<std::string, int>{{"connect", 3}});
    const std::string too_long = "unix:/" + std::string(200, 'x');
    for (const std::string& bad :
         {std::string("ftp://x"), std::string("127.0.0.1:80"), std::string("http://"), too_long}) {
        INFO(bad);
        options.urls = {bad};
        CHECK_THROWS_AS(run_quietly(options), std::runtime_error);
    }
}

TEST_CASE("a kept-alive connection that its server has closed is replaced without an error") {
    const Server server;
    Options options = options_for(server, 12, 1);
    options.headers = {"x-sim-fault: close-after"};
    const Outcome outcome = run_quietly(options);
    CHECK(errors_of(outcome) == std::map<std::string, int>{{"", 12}});
    CHECK(server.engine.counters().accepted == 12);
}

TEST_CASE("connections are kept, unless told not to") {
    const Server server;
    run_quietly(options_for(server, 10, 2));
    CHECK(server.engine.counters().accepted == 2);
    Options options = options_for(server, 10, 2);
    options.keep_alive = false;
    run_quietly(options);
    CHECK(server.engine.counters().accepted == 12);
}

TEST_CASE("a refusal is no failure, and its client pauses") {
    const Server server;
    Options options = options_for(server, 6);
    options.headers = {"x-sim-fault: early:429"};
    options.refused_pause = milliseconds(20);
    const Outcome outcome = run_quietly(options);
    REQUIRE(outcome.results.size() == 6);
    for (const Result& result : outcome.results) {
        CHECK(result.refused());
        CHECK_FALSE(result.failed());
    }
    // Two clients, three requests each: the last begins two pauses after the first.
    CHECK(outcome.results.back().start - outcome.results.front().start >= milliseconds(40));
}

TEST_CASE("clients that leave on purpose are seen leaving, and are no failure") {
    const Server server;
    Options options = options_for(server, 40, 8);
    options.leave = 1;
    options.leave_within = milliseconds(30);
    options.max_tokens = {200, 200};
    const Outcome outcome = run_quietly(options);
    REQUIRE(outcome.results.size() == 40);
    for (const Result& result : outcome.results) {
        CHECK(result.left);
        CHECK_FALSE(result.failed());
    }
}

TEST_CASE("slow readers take their time, get every byte, and disturb nobody after them") {
    const Server server;
    Options options = options_for(server, 4, 1);
    options.slow = 1;
    options.read_rate = 20'000;
    options.headers = {"x-sim-interval-us: 0"};
    options.max_tokens = {40, 40};
    const Outcome outcome = run_quietly(options);
    for (const Result& result : outcome.results) {
        CHECK(result.ok());
        CHECK(result.checked);
        CHECK(result.slow);
        CHECK(result.e2e() >= static_cast<double>(result.body_bytes) / options.read_rate - 0.15);
    }
}

TEST_CASE("a body that ends with the connection has no hash: its text is checked, its bytes are not") {
    const Server server;
    Options options = options_for(server, 2);
    options.headers = {"x-sim-close: 1"};
    for (const Result& result : run_quietly(options).results) {
        CHECK(result.ok());
        CHECK(result.checked);
        CHECK_FALSE(result.body_checked);
    }
    options.headers.clear();
    options.verify = false;
    for (const Result& result : run_quietly(options).results)
        CHECK_FALSE((result.checked || result.body_checked));
}

TEST_CASE("open loop: arrivals wait for nobody, and those beyond the bound are missed") {
    const Server server;
    Options options = options_for(server, 30, 1);
    options.rate = 2000;
    options.headers = {"x-sim-ttft-ms: 300"};
    const Outcome outcome = run_quietly(options);
    REQUIRE(outcome.results.size() == 30);
    CHECK(outcome.missed == 0);
    CHECK(outcome.lateness.count() == 30);
    // All were begun long before the first had its answer.
    const auto by_start = [](const Result& a, const Result& b) { return a.start < b.start; };
    const Result& last = *std::max_element(outcome.results.begin(), outcome.results.end(), by_start);
    for (const Result& result : outcome.results)
        CHECK(last.start < result.first.value());

    options.max_open = 4;
    options.requests = 0;
    options.stages = {{1, milliseconds(100)}};
    const Outcome bounded = run_quietly(options);
    CHECK(bounded.results.size() == 4);
    CHECK(bounded.missed > 10);
}

TEST_CASE("stages run one after the other, each with its clients") {
    const Server server;
    Options options = options_for(server, 0);
    options.stages = {{1, milliseconds(60)}, {3, milliseconds(60)}};
    const Outcome outcome = run_quietly(options);
    TimePoint first_over{}, second_begun = TimePoint::max();
    for (const Result& result : outcome.results) {
        CHECK(result.ok());
        if (result.stage == 0) first_over = std::max(first_over, result.end);
        if (result.stage == 1) second_begun = std::min(second_begun, result.start);
    }
    CHECK(first_over <= second_begun);
    CHECK(server.engine.counters().most_active == 3);
    REQUIRE(outcome.times.size() == 2);
    CHECK(outcome.times[0][0].gaps.count() > 0);
    CHECK(outcome.times[1][0].gaps.count() > 0);
}

TEST_CASE("two urls get the same requests, in turn which is first") {
    const Server one, two;
    Options options = options_for(one, 10, 1);
    options.urls.push_back(two.url() + "/v1/chat/completions");
    options.labels.emplace_back("B");
    options.expect_same = true;
    const Outcome outcome = run_quietly(options);
    REQUIRE(outcome.results.size() == 20);
    int first_target[2] = {0, 0};
    for (std::size_t i = 0; i < 20; i += 2) {
        const Result &a = outcome.results[i], &b = outcome.results[i + 1];
        CHECK(a.ok());
        CHECK(b.ok());
        CHECK(a.id == b.id);
        CHECK(a.target != b.target);
        CHECK(a.text_hash == b.text_hash);
        ++first_target[a.target];
    }
    CHECK(first_target[0] == 5);
    CHECK(first_target[1] == 5);
}

TEST_CASE("two urls that do not say the same are found out") {
    sim::Options longer = Server::quick();
    longer.ask.default_tokens = 9;
    sim::Options shorter = Server::quick();
    shorter.ask.default_tokens = 8;
    const Server one(longer), two(shorter);
    Options options = options_for(one, 3, 1);
    options.urls.push_back(two.url());
    options.labels.emplace_back("B");
    options.prompts = {{R"({"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]})", true}};
    CHECK(errors_of(run_quietly(options)) == std::map<std::string, int>{{"", 6}});
    options.expect_same = true;
    CHECK(errors_of(run_quietly(options)) == std::map<std::string, int>{{"", 3}, {"differs", 3}});
}
