#include "tests/bench/load/command.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/sim/engine.hpp"

namespace {

struct Ran {
    int status = 0;
    std::string out, err;
};

Ran run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "noren-load");
    std::ostringstream out, err;
    const int status =
        load::run_command(static_cast<int>(arguments.size()), arguments.data(), out, err, false);
    return {status, out.str(), err.str()};
}

struct Server {
    sim::Engine engine{options()};
    std::string url;

    Server() {
        engine.start();
        url = engine.url();
    }

    static sim::Options options() {
        sim::Options options;
        options.lone = sim::Pace{std::chrono::milliseconds(1), std::chrono::milliseconds(0), false};
        return options;
    }
};

}  // namespace

TEST_CASE("wrong usage ends with 2 and says what was expected") {
    struct Case {
        std::vector<const char*> arguments;
        const char* problem;
    };
    const std::vector<Case> cases = {
        {{}, "--url"},
        {{"--url", "ftp://x", "-n", "1"}, "expected http://"},
        {{"--url", "http://127.0.0.1:1", "--api", "grpc"}, "no API \"grpc\""},
        {{"--url", "http://127.0.0.1:1", "-c", "0"}, "-c"},
        {{"--url", "http://127.0.0.1:1", "--rate", "-3"}, "--rate"},
        {{"--url", "http://127.0.0.1:1", "--max-tokens", "5:4"}, "LEAST:MOST"},
        {{"--url", "http://127.0.0.1:1", "--duration", "10"}, "250ms"},
        {{"--url", "http://127.0.0.1:1", "--stages", "4"}, "CLIENTS:TIME"},
        {{"--url", "http://127.0.0.1:1", "--stages", "4:1s", "--rate", "5"}, "exclude"},
        {{"--url", "http://127.0.0.1:1", "--stages", "4:1s", "--duration", "5s"}, "exclude"},
        {{"--url", "http://127.0.0.1:1", "--leave", "2"}, "--leave"},
        {{"--url", "http://127.0.0.1:1", "-H", "Host: x"}, "does not set itself"},
        {{"--url", "http://127.0.0.1:1", "--labels", "a"}, "NAME,NAME"},
        {{"--url", "http://127.0.0.1:1", "--expect-same"}, "--against"},
        {{"--url", "http://127.0.0.1:1", "--prompts", "/dev/null/x"}, "cannot read"},
        {{"--url", "http://127.0.0.1:1", "--per-request", "/dev/null/x"}, "cannot write"},
        {{"--url", "http://127.0.0.1:1", "--wat"}, "--wat"},
    };
    for (const Case& wrong : cases) {
        INFO(wrong.problem);
        const Ran ran = run(wrong.arguments);
        CHECK(ran.status == 2);
        CHECK(ran.out.empty());
        CHECK_THAT(ran.err, Catch::Contains(wrong.problem));
    }
    const Ran help = run({"--help"});
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Catch::Contains("--per-request"));
}

TEST_CASE("all well ends with 0, in words, in JSON and request by request") {
    const Server server;
    std::string file = "/tmp/noren-load-test-XXXXXX";
    ::close(::mkstemp(file.data()));
    const Ran ran = run({"--url", server.url.c_str(), "-n", "5", "--per-request", file.c_str()});
    CHECK(ran.status == 0);
    CHECK_THAT(ran.out, Catch::Contains("every byte of the body right             5\n"));
    CHECK(ran.err.empty());
    std::ifstream lines(file);
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count)
        CHECK(boost::json::parse(line).at("ok").as_bool());
    CHECK(count == 5);
    std::remove(file.c_str());

    const Ran as_json = run({"--url", server.url.c_str(), "-n", "5", "--json", "--api", "ollama"});
    CHECK(as_json.status == 0);
    CHECK(boost::json::parse(as_json.out).at("runs").at(0).at("checked").to_number<int>() == 5);
}

TEST_CASE("something gone wrong ends with 1, refusals do not") {
    const Server server;
    CHECK(run({"--url", server.url.c_str(), "-n", "2", "-H", "x-sim-fault: cut@100"}).status == 1);
    CHECK(run({"--url", server.url.c_str(), "-n", "2", "-H", "x-sim-fault: early:500"}).status == 1);
    CHECK(run({"--url", server.url.c_str(), "-n", "2", "-H", "x-sim-fault: early:429"}).status == 0);
    CHECK(run({"--url", server.url.c_str(), "-n", "2", "--leave", "1", "--leave-within", "0s"}).status == 0);
}
