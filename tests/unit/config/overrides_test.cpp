#include "config/overrides.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "config/keys.hpp"
#include "config/load.hpp"
#include "tests/support/temp_dir.hpp"

namespace config = noren::config;
using noren::test::TempDir;
using noren::test::write_file;
using namespace std::chrono_literals;

namespace {

using Lines = std::vector<std::string>;

config::Environment environment(std::vector<const char*> variables) {
    variables.push_back(nullptr);
    return config::read_environment(variables.data());
}

Lines lines(const config::LoadResult& result) {
    Lines out;
    for (const auto& mistake : result.mistakes)
        out.push_back(mistake.to_string());
    return out;
}

}  // namespace

TEST_CASE("without any source everything is at its default") {
    const auto resolved = config::load(config::Sources{});
    REQUIRE(resolved.ok());
    CHECK(*resolved.config == config::Config{});
    CHECK(resolved.origins.empty());
    CHECK(resolved.file_text.empty());
}

TEST_CASE("flags beat the environment, the environment beats the file") {
    const TempDir dir;
    const std::string path = (dir / "noren.yaml").string();
    write_file(path, "workers: 1\nadmission: {max_concurrency: 1, max_queue: 1}\n");
    config::Sources sources;
    sources.environment = environment({"NOREN_MAX_CONCURRENCY=2", "NOREN_MAX_QUEUE=2"}).overrides;
    sources.environment.config = "/nowhere/else.yaml";
    sources.flags.config = path;
    sources.flags.max_queue = "3";
    const auto resolved = config::load(sources);
    REQUIRE(resolved.ok());
    CHECK(resolved.config->workers == 1);
    CHECK(resolved.config->admission.max_concurrency == 2);
    CHECK(resolved.config->admission.max_queue == 3);
    CHECK(resolved.origins == config::Origins{{"workers", {path, 1}},
                                              {"admission.max_concurrency", {"NOREN_MAX_CONCURRENCY", 0}},
                                              {"admission.max_queue", {"--max-queue", 0}}});
    CHECK(resolved.file_text == "workers: 1\nadmission: {max_concurrency: 1, max_queue: 1}\n");
}

TEST_CASE("what the file says in vain is told, with the strongest of those that overrule it") {
    const TempDir dir;
    const std::string limit_file = (dir / "max-concurrency").string();
    config::Sources sources;
    sources.flags.config = "noren.yaml";
    sources.environment = environment({"NOREN_MAX_QUEUE=2", "NOREN_WORKERS=2"}).overrides;
    sources.flags.max_queue = "3";
    sources.flags.listen = ":80";  // of which the file says nothing
    const std::string text =
        "workers: 2\nadmission:\n  max_queue: 1\n  max_concurrency: 5\n  max_concurrency_file: " +
        limit_file + "\n";
    const auto overruled = [&] {
        Lines out;
        for (const auto& key : config::load(sources, text).overruled)
            out.push_back(key.to_string());
        return out;
    };
    const std::string queue = "noren.yaml:3: admission.max_queue is not in force: --max-queue is stronger";
    const std::string workers = "noren.yaml:1: workers is not in force: NOREN_WORKERS is stronger";
    CHECK(overruled() == Lines{queue, workers});
    write_file(limit_file, "48");
    CHECK(overruled() ==
          Lines{"noren.yaml:4: admission.max_concurrency is not in force: " + limit_file + " is stronger",
                queue, workers});
    CHECK(config::load(config::Sources{}, text).overruled.size() == 1);  // that of the limit's file
}

TEST_CASE("each override reaches its key") {
    config::Sources sources;
    sources.flags = {.config = std::nullopt,
                     .listen = ":80",
                     .upstream = "http://engine:1",
                     .ops = ":81",
                     .workers = "2",
                     .max_concurrency = "3",
                     .max_queue = "4",
                     .queue_timeout = "5s",
                     .log_level = "debug"};
    config::Config expected;
    expected.listen = ":80";
    expected.upstream.url = "http://engine:1";
    expected.ops.listen = ":81";
    expected.workers = 2;
    expected.admission.max_concurrency = 3;
    expected.admission.max_queue = 4;
    expected.admission.queue_timeout = 5s;
    expected.log.level = "debug";
    CHECK(config::load(sources).config == expected);

    const auto read = environment({"NOREN_LISTEN=:80", "NOREN_UPSTREAM=http://engine:1", "NOREN_OPS=:81",
                                   "NOREN_WORKERS=2", "NOREN_MAX_CONCURRENCY=3", "NOREN_MAX_QUEUE=4",
                                   "NOREN_QUEUE_TIMEOUT=5s", "NOREN_LOG_LEVEL=debug"});
    CHECK(read.overrides == sources.flags);
    CHECK(read.warnings.empty());
}

TEST_CASE("an override is named as it was given, with the same rules as the file") {
    config::Sources sources;
    sources.environment =
        environment({"NOREN_QUEUE_TIMEOUT=30", "NOREN_UPSTREAM=http://me:secret@x"}).overrides;
    sources.flags.max_concurrency = "lots";
    sources.flags.listen = "";
    CHECK(
        lines(config::load(sources)) ==
        Lines{
            "NOREN_UPSTREAM: upstream.url: found \"http://***@x\", expected http://host:port, "
            "https://host:port or unix:/path without user and password: noren adds no credentials, it passes "
            "on the client's",
            "NOREN_QUEUE_TIMEOUT: admission.queue_timeout: found 30 without a unit, expected a duration from "
            "0 to "
            "24h (units ms, s, m, h)",
            "--listen: listen: found empty text, expected IPv4:port, [IPv6]:port, :port or unix:/path",
            "--max-concurrency: admission.max_concurrency: found \"lots\", expected a whole number from 0 to "
            "1000000"});
}

TEST_CASE("mistakes of all sources are told together") {
    config::Sources sources;
    sources.flags.config = "/nowhere/noren.yaml";
    sources.flags.workers = "x";
    CHECK(lines(config::load(sources)) ==
          Lines{"/nowhere/noren.yaml: found no such file, expected a readable file",
                "--workers: workers: found \"x\", expected a whole number from 0 to 256"});
    CHECK(lines(config::load(sources, "workers: y\n")) ==
          Lines{"/nowhere/noren.yaml:1: workers: found \"y\", expected a whole number from 0 to 256",
                "--workers: workers: found \"x\", expected a whole number from 0 to 256"});
}

TEST_CASE("a contradiction counts only between the values in force, and is told at the override") {
    config::Sources sources;
    sources.flags.config = "noren.yaml";
    sources.flags.queue_timeout = "20s";
    CHECK(lines(config::load(sources, "timeouts: {total: 10s}\n")) ==
          Lines{"--queue-timeout: admission.queue_timeout: found admission.queue_timeout 20s with "
                "timeouts.total 10s, "
                "expected a wait no longer than the whole exchange may take"});
    sources.flags.queue_timeout = "5s";
    CHECK(config::load(sources, "timeouts: {total: 10s}\n").ok());
}

TEST_CASE("the limit file beats every other source of the limit") {
    const TempDir dir;
    const std::string path = (dir / "max-concurrency").string();
    config::Sources sources;
    sources.flags.config = "noren.yaml";
    sources.flags.max_concurrency = "7";
    const std::string text = "admission: {max_concurrency: 5, max_concurrency_file: " + path + "}\n";
    const auto limit = [&] { return config::load(sources, text).config->admission.max_concurrency; };

    CHECK(limit() == 7);  // no such file
    for (const char* blank : {"", "\n", " \t\r\n"}) {
        write_file(path, blank);
        CHECK(limit() == 7);
    }
    for (const char* content : {"48", "48\n", "  48 \r\n"}) {
        write_file(path, content);
        CHECK(limit() == 48);
        CHECK(config::load(sources, text).limit_file.text == content);
        CHECK(config::load(sources, text).limit_file.warning.empty());
        CHECK(config::load(sources, text).origins.at("admission.max_concurrency").source == path);
    }
    for (const auto& [content, found] :
         {std::pair{"many", "\"many\""}, {"48 49", "\"48 49\""}, {"1000001", "1000001"}}) {
        write_file(path, content);
        CHECK(lines(config::load(sources, text)) ==
              Lines{path + ": admission.max_concurrency: found " + found +
                    ", expected a whole number from 0 to 1000000"});
    }
}

TEST_CASE("a limit file that is there and cannot be read says nothing, and is warned of") {
    const TempDir dir;
    config::Sources sources;
    sources.flags.config = "noren.yaml";
    const auto resolved = config::load(
        sources, "admission: {max_concurrency: 5, max_concurrency_file: " + (dir / "").string() + "}\n");
    REQUIRE(resolved.ok());
    CHECK(resolved.config->admission.max_concurrency == 5);
    CHECK(resolved.limit_file.text == "a directory");
    CHECK(resolved.limit_file.warning ==
          "admission.max_concurrency_file says nothing: " + (dir / "").string() + " is a directory");
    CHECK(config::read_limit_file((dir / "none").string()).warning.empty());
}

TEST_CASE("a file that cannot be read makes up no contradiction") {
    config::Sources sources;
    sources.flags.config = "noren.yaml";
    sources.flags.listen = ":8000";  // the engine's port by default, but not in a file that says otherwise
    CHECK(config::load(sources, "upstream: {url: 'http://engine:8001'}\n").ok());
    CHECK(lines(config::load(sources, "upstream: {url: 'http://engine:8001'\n")).size() == 1);
}

TEST_CASE("a variable set to nothing is not set") {
    CHECK(environment({"NOREN_CONFIG=", "NOREN_MAX_QUEUE="}).overrides == config::Overrides{});
    CHECK(environment({"NOREN_CONFIG"}).overrides == config::Overrides{});
    CHECK(config::read_environment(nullptr).overrides == config::Overrides{});
}

TEST_CASE("a variable that means nothing to noren is warned about") {
    CHECK(
        environment({"NOREN_MAX_CONCURENCY=5", "NOREN_COLOUR=red", "HOME=/", "XNOREN_LISTEN=:1"}).warnings ==
        Lines{"NOREN_MAX_CONCURENCY is not a variable of noren and has no effect; did you mean "
              "NOREN_MAX_CONCURRENCY?",
              "NOREN_COLOUR is not a variable of noren and has no effect"});
    CHECK(environment({"NOREN_LISTEN_PORT=8080"}).warnings.size() == 1);
}

TEST_CASE("what Kubernetes and the pod put into the environment is not warned about") {
    CHECK(environment({"NOREN_POD=a", "NOREN_NODE=b", "NOREN_NAMESPACE=c", "NOREN_SERVICE_HOST=10.0.0.1",
                       "NOREN_SERVICE_PORT=80", "NOREN_SERVICE_PORT_HTTP=80", "NOREN_PORT=tcp://10.0.0.1:80",
                       "NOREN_PORT_80_TCP=tcp://10.0.0.1:80", "NOREN_PORT_80_TCP_PROTO=tcp",
                       "NOREN_OPS_SERVICE_HOST=10.0.0.2", "NOREN_OPS_PORT=tcp://10.0.0.2:9464"})
              .warnings.empty());
}

TEST_CASE("flag, variable and key of an override belong together") {
    for (const auto& name : config::override_names()) {
        INFO(name.flag);
        std::string variable = "NOREN_" + std::string(name.flag.substr(2));
        for (char& c : variable)
            c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
        CHECK(name.variable == variable);
        CHECK((name.flag == "--config" || config::find_key(name.section, name.name) != nullptr));
        CHECK_FALSE(name.help.empty());
    }
    CHECK(config::override_names().size() == 9);
}

TEST_CASE("the control socket is found in a file with mistakes elsewhere") {
    const noren::test::TempDir dir;
    config::Sources sources;
    CHECK(config::control_socket(sources) == "/run/noren/control.sock");
    sources.flags.config = (dir / "noren.yaml").string();
    CHECK(config::control_socket(sources) == "/run/noren/control.sock");
    const auto in_file = [&](std::string_view text) {
        noren::test::write_file(dir / "noren.yaml", text);
        return config::control_socket(sources);
    };
    CHECK(in_file("control: {socket: /a.sock}\n") == "/a.sock");
    CHECK(in_file("admision: {}\ncontrol: {socket: /a.sock}\nworkers: many\n") == "/a.sock");
    CHECK(in_file("control: {socket: ''}\n").empty());
    CHECK(in_file("control: {socket: a.sock}\n") == "/run/noren/control.sock");
    CHECK(in_file("control: {socket\n") == "/run/noren/control.sock");
}
