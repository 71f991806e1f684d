#include "config/load.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temp_dir.hpp"
#include "tests/unit/config/load_file.hpp"

namespace config = noren::config;
using noren::test::load_file;
using noren::test::TempDir;
using noren::test::write_file;
using namespace std::chrono_literals;

namespace {

using Lines = std::vector<std::string>;

/// What noren would print for a text.
Lines mistakes(std::string_view text) {
    const auto result = config::load_text(text, "noren.yaml");
    CHECK(result.config.has_value() == result.mistakes.empty());
    Lines lines;
    for (const auto& mistake : result.mistakes)
        lines.push_back(mistake.to_string());
    return lines;
}

config::Config loaded(std::string_view text) {
    auto result = config::load_text(text, "noren.yaml");
    for (const auto& mistake : result.mistakes)
        UNSCOPED_INFO(mistake.to_string());
    REQUIRE(result.ok());
    return std::move(*result.config);
}

}  // namespace

TEST_CASE("what is not said stays at its default") {
    for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "---\n...\n", "~\n", "{}\n",
                             "\xef\xbb\xbf# BOM\n", "admission:\n  # max_queue: 3\ntimeouts:\n"}) {
        INFO(text);
        CHECK(loaded(text) == config::Config{});
    }
}

TEST_CASE("each kind of value is read") {
    const auto config = loaded(
        "listen: '[::]:8080'\r\n"
        "workers: 3\r\n"
        "upstream: {url: 'unix:/run/engine.sock', idle_timeout: 0, health_path: '/ping?deep=1'}\n"
        "admission:\n"
        "  max_concurrency: 0\n"
        "  queue_timeout: 1500ms\n"
        "  full_status: 503\n"
        "  gated_paths:\n"
        "    - /v1/*/generate\n"
        "    - \"/\"\n"
        "downstream:\n"
        "  buffer: 1MiB\n"
        "  max_body: 0\n"
        "control:\n"
        "  socket: \"\"\n"
        "log: {level: off, access: /var/log/noren.json}\n"
        "metrics: {models: [llama:70b, \"\\u65e5\\u672c\", 7]}\n");
    config::Config expected;
    expected.listen = "[::]:8080";
    expected.workers = 3;
    expected.upstream.url = "unix:/run/engine.sock";
    expected.upstream.idle_timeout = 0ms;
    expected.upstream.health_path = "/ping?deep=1";
    expected.admission.max_concurrency = 0;
    expected.admission.queue_timeout = 1500ms;
    expected.admission.full_status = 503;
    expected.admission.gated_paths = {"/v1/*/generate", "/"};
    expected.downstream.buffer = 1024 * 1024;
    expected.downstream.max_body = 0;
    expected.control.socket = "";
    expected.log.level = "off";
    expected.log.access = "/var/log/noren.json";
    expected.metrics.models = {"llama:70b", "\u65e5\u672c", "7"};
    CHECK(config == expected);
}

TEST_CASE("it is known where each key was set") {
    const auto result = config::load_text("workers: 2\nadmission:\n\n  max_queue: 7\n", "a.yaml");
    CHECK(result.origins ==
          config::Origins{{"workers", {"a.yaml", 1}}, {"admission.max_queue", {"a.yaml", 4}}});
}

TEST_CASE("all mistakes are told at once, in the order of the lines") {
    CHECK(
        mistakes("listen: 8080\n"
                 "admission:\n"
                 "  max_concurrency: lots\n"
                 "  max_queue: 7\n"
                 "  gated_paths: [/ok, bad]\n"
                 "  max_queue: 8\n"
                 "timeout: 5s\n"
                 "upstream:\n"
                 "  url: https://user:secret@engine\n") ==
        Lines{
            "noren.yaml:1: listen: found 8080, expected IPv4:port, [IPv6]:port, :port or unix:/path",
            "noren.yaml:3: admission.max_concurrency: found \"lots\", expected a whole number from 0 to "
            "1000000",
            "noren.yaml:5: admission.gated_paths: found \"bad\", expected a path that begins with /, where * "
            "stands for one whole segment",
            "noren.yaml:6: admission.max_queue: found the key again (first on line 4), expected each key "
            "once",
            "noren.yaml:7: timeout: found an unknown key, expected timeouts (did you mean that?)",
            "noren.yaml:9: upstream.url: found \"https://***@engine\", expected http://host:port, "
            "https://host:port or unix:/path without user and password: noren adds no credentials, it passes "
            "on the client's",
        });
}

TEST_CASE("a number is a plain whole number in its range") {
    const std::string wanted = ", expected a whole number from 0 to 256";
    const auto with = [](std::string_view value) {
        return mistakes("workers: " + std::string(value) + '\n');
    };
    CHECK(with("256").empty());
    CHECK(with("257") == Lines{"noren.yaml:1: workers: found 257" + wanted});
    CHECK(with("-1") == Lines{"noren.yaml:1: workers: found \"-1\"" + wanted});
    CHECK(with("99999999999999999999999") ==
          Lines{"noren.yaml:1: workers: found \"99999999999999999999999\"" + wanted});
    CHECK(with("010") == Lines{"noren.yaml:1: workers: found 010" + wanted});
    CHECK(with("0x10") == Lines{"noren.yaml:1: workers: found \"0x10\"" + wanted});
    CHECK(with("1.0") == Lines{"noren.yaml:1: workers: found \"1.0\"" + wanted});
    CHECK(with("\"4\"") == Lines{"noren.yaml:1: workers: found \"4\" in quotes" + wanted});
    CHECK(with("") == Lines{"noren.yaml:1: workers: found nothing" + wanted});
    CHECK(with("''") == Lines{"noren.yaml:1: workers: found empty text" + wanted});
    CHECK(with("[4]") == Lines{"noren.yaml:1: workers: found a list" + wanted});
    CHECK(with("{a: 4}") == Lines{"noren.yaml:1: workers: found a map of keys" + wanted});
    CHECK(with("!!int 4") ==
          Lines{"noren.yaml:1: workers: found a value with the tag \"tag:yaml.org,2002:int\"" + wanted});
}

TEST_CASE("durations and sizes are told with their range and units") {
    CHECK(mistakes("timeouts:\n  head: 30\n  connect: 0\n  total: 25h\n") ==
          Lines{"noren.yaml:2: timeouts.head: found 30 without a unit, expected a duration from 10ms to 1h "
                "(units ms, s, m, h)",
                "noren.yaml:3: timeouts.connect: found 0, expected a duration from 10ms to 1h (units ms, s, "
                "m, h)",
                "noren.yaml:4: timeouts.total: found \"25h\", expected a duration from 0 to 24h (units ms, "
                "s, m, h)"});
    CHECK(
        mistakes("downstream: {max_head: 64KiB, buffer: 1MB, max_body: 99999999999GiB}\n") ==
        Lines{
            "noren.yaml:1: downstream.max_head: found \"64KiB\", expected a size from 8KiB to 63KiB "
            "(units KiB, MiB, GiB)",
            "noren.yaml:1: downstream.buffer: found \"1MB\", expected a size from 16KiB to 1GiB "
            "(units KiB, MiB, GiB)",
            "noren.yaml:1: downstream.max_body: found \"99999999999GiB\", expected a size from 0 to 1024GiB "
            "(units KiB, MiB, GiB)"});
    CHECK(mistakes("downstream: {max_head: [1]}\ntimeouts: {head: {}}\n").size() == 2);
}

TEST_CASE("the ends of every range are part of it, and what is beyond is not") {
    struct Edge {
        const char* section;
        const char* key;
        const char* least;
        const char* most;
        const char* below;  // empty: there is nothing below
        const char* above;
    };
    const Edge edges[] = {
        {"upstream", "idle_timeout", "0", "1h", "", "3600001ms"},
        {"upstream", "health_interval", "0", "1h", "", "3600001ms"},
        {"upstream", "health_timeout", "10ms", "1h", "9ms", "3600001ms"},
        {"admission", "max_concurrency", "0", "1000000", "", "1000001"},
        {"admission", "max_queue", "0", "1000000", "", "1000001"},
        {"admission", "queue_timeout", "0", "24h", "", "86400001ms"},
        {"downstream", "buffer", "16KiB", "1GiB", "16383", "1073741825"},
        {"downstream", "stall_timeout", "0", "24h", "", "86400001ms"},
        {"downstream", "request_buffer", "4KiB", "64MiB", "4095", "67108865"},
        {"downstream", "max_head", "8KiB", "63KiB", "8191", "64513"},
        {"downstream", "max_fields", "16", "1000", "15", "1001"},
        {"downstream", "max_body", "0", "1024GiB", "", "1099511627777"},
        {"downstream", "min_upload_rate", "0", "1GiB", "", "1073741825"},
        {"downstream", "min_upload_window", "10ms", "1h", "9ms", "3600001ms"},
        {"downstream", "max_connections", "1", "1000000", "0", "1000001"},
        {"downstream", "max_connections_per_client", "0", "1000000", "", "1000001"},
        {"timeouts", "head", "10ms", "1h", "9ms", "3600001ms"},
        {"timeouts", "connect", "10ms", "1h", "9ms", "3600001ms"},
        {"drain", "lame_duck", "0", "1h", "", "3600001ms"},
        {"drain", "timeout", "0", "24h", "", "86400001ms"},
        {"metrics", "max_models", "1", "1000", "0", "1001"},
    };
    for (const Edge& edge : edges) {
        INFO(edge.section << '.' << edge.key);
        const auto count = [&](const std::string& value) {
            return mistakes(std::string(edge.section) + ":\n  " + edge.key + ": " + value + '\n').size();
        };
        CHECK(count(edge.least) == 0);
        CHECK(count(edge.most) == 0);
        CHECK(count(edge.above) == 1);
        if (*edge.below) CHECK(count(edge.below) == 1);
    }
}

TEST_CASE("words, paths and names are checked") {
    const auto count = [](const std::string& text) {
        UNSCOPED_INFO(text);
        return mistakes(text).size();
    };
    CHECK(mistakes("log: {level: warn}\n") == Lines{"noren.yaml:1: log.level: found \"warn\", expected one "
                                                    "of trace, debug, info, warning, error, off"});
    CHECK(mistakes("admission: {full_status: 500}\n") ==
          Lines{"noren.yaml:1: admission.full_status: found 500, expected one of 429, 503"});
    CHECK(count("log: {access: stdot}\n") == 1);
    CHECK(count("log: {access: ./access.json}\n") == 0);
    CHECK(count("log: {access: /var/log/}\n") == 1);
    CHECK(count("control: {socket: control.sock}\n") == 1);
    CHECK(count("ops: {listen: 'unix:/run/ops.sock'}\n") == 1);
    for (const char* path : {"health", "\"/a b\"", "\"/a\\r\\nx: y\"", "\"/a\\0\"", "/a#b", "\"/\\u00e9\""}) {
        CHECK(count("upstream: {health_path: " + std::string(path) + "}\n") == 1);
    }
    for (const char* path : {"/*x", "/x*/y", "/**", "/a?b", "''", "~"}) {
        CHECK(count("admission: {gated_paths: [/ok, " + std::string(path) + "]}\n") == 1);
    }
    CHECK(count("admission: {gated_paths: []}\n") == 0);
    // What stops at a NUL would read another file.
    for (const char* key :
         {"admission: {max_concurrency_file: ", "tls: {client_ca: ", "upstream: {tls: {ca: "}) {
        INFO(key);
        const std::string end = std::string(key).find("tls: {ca") == std::string::npos ? "}\n" : "}}\n";
        const Lines told = mistakes(key + std::string("\"/a\\0b\"") + end);
        REQUIRE_FALSE(told.empty());
        CHECK(told.front().find("found \"/a\\x00b\", expected an absolute path without control characters") !=
              std::string::npos);
    }
    CHECK(count("metrics: {models: ['', \"a\\nb\", [x]]}\n") == 3);
    CHECK(count("metrics: {models: [" + std::string(256, 'm') + "]}\n") == 0);
    CHECK(count("metrics: {models: [" + std::string(257, 'm') + "]}\n") == 1);
}

TEST_CASE("the permissions of a socket are four octal digits") {
    const auto mode = [](const std::string& value) {
        return loaded("listen_mode: " + value + "\n").listen_mode;
    };
    CHECK(mode("0660") == 0660);
    CHECK(mode("\"0600\"") == 0600);
    CHECK(mode("0777") == 0777);
    CHECK(mode("0000") == 0);
    for (const char* value :
         {"660", "1777", "0680", "432", "0o660", "00660", "rw-rw----", "-660", "", "[0660]"}) {
        INFO(value);
        CHECK(mistakes("listen_mode: " + std::string(value) + "\n").size() == 1);
    }
    CHECK(
        mistakes("listen_mode: 660\n") ==
        Lines{
            "noren.yaml:1: listen_mode: found 660, expected the permissions of a file as four octal digits, "
            "0000 to 0777"});
}

TEST_CASE("a section in a section is read, and its slips are told with the whole path") {
    const auto config = loaded(
        "tls: {certificate: /tls/tls.crt, key: /tls/tls.key, client_ca: /tls/ca.crt, min_version: 1.3}\n"
        "upstream:\n  url: https://engine\n  tls:\n    ca: /ca.crt\n    verify: off\n    server_name: "
        "engine.ns\n"
        "    certificate: /me.crt\n    key: /me.key\n");
    CHECK(config.tls == config::Tls{"/tls/tls.crt", "/tls/tls.key", "/tls/ca.crt", "1.3"});
    CHECK(config.upstream.tls == config::UpstreamTls{"/ca.crt", "engine.ns", "off", "/me.crt", "/me.key"});
    CHECK(loaded("upstream:\n  tls:\n") == config::Config{});
    CHECK(mistakes("upstream: {tls: {verify: no}}\n") ==
          Lines{"noren.yaml:1: upstream.tls.verify: found \"no\", expected one of on, off"});
    CHECK(
        mistakes("upstream: {tls: {cert: /x}}\n") ==
        Lines{
            "noren.yaml:1: upstream.tls.cert: found an unknown key, expected one of ca, server_name, verify, "
            "certificate, key"});
    CHECK(mistakes("upstream: {tsl: {ca: /x}}\n") ==
          Lines{"noren.yaml:1: upstream.tsl: found an unknown key, expected tls (did you mean that?)"});
    CHECK(mistakes("upstream: {tls: {ca: /x}, tls: {ca: /y}}\n") ==
          Lines{"noren.yaml:1: upstream.tls: found the key again (first on line 1), expected each key once"});
    CHECK(mistakes("upstream: {tls: on}\n") ==
          Lines{"noren.yaml:1: upstream.tls: found \"on\", expected keys of the section upstream.tls"});
    CHECK(mistakes("upstream.tls: {ca: /x}\n").size() == 1);
    CHECK(mistakes("tls: {certificate: tls.crt}\n")
              .front()
              .starts_with("noren.yaml:1: tls.certificate: found \"tls.crt\", expected an absolute path"));
    CHECK(mistakes("tls: {min_version: 1.1}\n") ==
          Lines{"noren.yaml:1: tls.min_version: found \"1.1\", expected one of 1.2, 1.3"});
}

TEST_CASE("half of a TLS pair, and TLS settings without TLS, are contradictions") {
    CHECK(mistakes("tls: {certificate: /a}\n") ==
          Lines{"noren.yaml:1: tls.certificate: found tls.certificate without tls.key, expected both, or "
                "neither"});
    CHECK(mistakes("tls:\n  key: /a\n") ==
          Lines{"noren.yaml:2: tls.key: found tls.key without tls.certificate, expected both, or neither"});
    CHECK(mistakes("tls: {client_ca: /a}\n").size() == 1);
    CHECK(mistakes("upstream: {url: 'https://e', tls: {certificate: /a}}\n").size() == 1);
    CHECK(mistakes("upstream: {url: 'http://e', tls: {ca: /a}}\n") ==
          Lines{"noren.yaml:1: upstream.tls.ca: found upstream.tls.ca while upstream.url is \"http://e\", "
                "expected an https:// url, or no upstream.tls"});
    CHECK(mistakes("upstream: {url: 'unix:/e', tls: {server_name: x}}\n").size() == 1);
    CHECK(mistakes("upstream: {url: 'https://e', tls: {ca: /a, certificate: /b, key: /c}}\n").empty());
}

TEST_CASE("the engine's metrics page: what may be said of it, and what may not") {
    CHECK(loaded("engine_metrics: {path: /prometheus/metrics, url: 'http://127.0.0.1:8002', window: 0, "
                 "timeout: 2s, max_size: 1MiB, figures: on, merge: on, add_queue: on, max_age: 5s, orca: "
                 "always}\n")
              .engine_metrics == config::EngineMetrics{"/prometheus/metrics", "http://127.0.0.1:8002",
                                                       config::Duration{0}, config::Duration{2'000},
                                                       1024 * 1024, "on", "on", "on", config::Duration{5'000},
                                                       "always"});
    CHECK(loaded("engine_metrics: {url: 'unix:/run/e.sock'}\n").engine_metrics.url == "unix:/run/e.sock");
    const std::string key = "noren.yaml:1: engine_metrics.";
    const std::string url = "expected http://host[:port] or unix:/path, or \"\" for none";
    CHECK(mistakes("engine_metrics: {url: 'https://e:8002'}\n") ==
          Lines{key + "url: found \"https://e:8002\", " + url});
    CHECK(mistakes("engine_metrics: {url: 'http://e/metrics'}\n") ==
          Lines{key + "url: found \"http://e/metrics\", " + url});
    for (const char* path : {"metrics", "/metrics?name=x", "/me trics", "/metrics#x"}) {
        CHECK(mistakes("engine_metrics: {path: '" + std::string(path) + "'}\n") ==
              Lines{key + "path: found \"" + path +
                    "\", expected a path that begins with / and has neither spaces nor a query"});
    }
    CHECK(mistakes("engine_metrics: {window: 61s}\n") ==
          Lines{key + "window: found \"61s\", expected a duration from 0 to 1m (units ms, s, m, h)"});
    CHECK(mistakes("engine_metrics: {timeout: 0}\n") ==
          Lines{key + "timeout: found 0, expected a duration from 10ms to 1h (units ms, s, m, h)"});
    CHECK(mistakes("engine_metrics: {max_size: 1KiB}\n").size() == 1);
    CHECK(mistakes("engine_metrics: {max_age: 10ms}\n").size() == 1);
    for (const char* name : {"figures", "merge", "add_queue"}) {
        CHECK(mistakes("engine_metrics: {" + std::string(name) + ": yes}\n") ==
              Lines{key + name + ": found \"yes\", expected one of on, off"});
    }
    CHECK(mistakes("engine_metrics: {orca: on}\n") ==
          Lines{key + "orca: found \"on\", expected one of off, asked, always"});
    CHECK(mistakes("engine_metrics: {add_queue: on}\n") ==
          Lines{key + "add_queue: found engine_metrics.add_queue without engine_metrics.merge, expected "
                      "merge: on, whose page it changes"});
    CHECK(mistakes("engine_metrics: {url: 'http://localhost:9464'}\n") ==
          Lines{key + "url: found \"http://localhost:9464\" while ops.listen is \"[::]:9464\", expected the "
                      "address of the engine's page, not of noren's own"});
}

TEST_CASE("an unknown key is told with the one that was likely meant") {
    const std::string unknown = ": found an unknown key, expected ";
    CHECK(mistakes("admission: {max_concurency: 1}\n") ==
          Lines{"noren.yaml:1: admission.max_concurency" + unknown + "max_concurrency (did you mean that?)"});
    CHECK(mistakes("admission: {maxQueue: 1}\n") ==
          Lines{"noren.yaml:1: admission.maxQueue" + unknown + "max_queue (did you mean that?)"});
    CHECK(mistakes("max_concurrency: 1\n") == Lines{"noren.yaml:1: max_concurrency" + unknown +
                                                    "admission.max_concurrency (did you mean that?)"});
    CHECK(mistakes("metrics: {colour: red}\n") ==
          Lines{"noren.yaml:1: metrics.colour" + unknown + "one of models, max_models"});
    CHECK(mistakes("admission.max_queue: 1\n").size() == 1);
    CHECK(mistakes("? [a]\n: 1\n") ==
          Lines{"noren.yaml:1: found a list as a key, expected the name of a key"});
    CHECK(mistakes("\"a\\nb\": 1\n").front().starts_with("noren.yaml:1: \"a\\x0ab\": found an unknown key"));
}

TEST_CASE("a section is a map, given once") {
    CHECK(mistakes("drain: 5s\n") ==
          Lines{"noren.yaml:1: drain: found \"5s\", expected keys of the section drain"});
    CHECK(mistakes("log: [level]\n") ==
          Lines{"noren.yaml:1: log: found a list, expected keys of the section log"});
    CHECK(mistakes("log: {level: info}\ndrain:\nlog: {level: debug}\n") ==
          Lines{"noren.yaml:3: log: found the key again (first on line 1), expected each key once"});
    CHECK(mistakes("- listen\n") == Lines{"noren.yaml:1: found a list, expected keys and sections"});
    CHECK(mistakes("hello\n") == Lines{"noren.yaml:1: found \"hello\", expected keys and sections"});
}

TEST_CASE("values that contradict each other are told at the line that set them") {
    CHECK(mistakes("timeouts:\n  total: 10s\n") ==
          Lines{"noren.yaml:2: timeouts.total: found admission.queue_timeout 30s with timeouts.total 10s, "
                "expected a "
                "wait no longer than the whole exchange may take"});
    CHECK(mistakes("timeouts: {total: 10s}\nadmission: {queue_timeout: 10001ms}\n")
              .front()
              .starts_with("noren.yaml:2: admission.queue_timeout: "));
    CHECK(mistakes("timeouts: {total: 10s}\nadmission: {queue_timeout: 10s}\n").empty());
    CHECK(mistakes("timeouts: {total: 10s}\nadmission: {queue_timeout: 0}\n").empty());
    CHECK(mistakes("metrics: {max_models: 1, models: [a, b]}\n") ==
          Lines{"noren.yaml:1: metrics.max_models: found 2 models with max_models 1, expected room for all "
                "models "
                "that are named"});
    CHECK(mistakes("metrics: {max_models: 2, models: [a, b]}\n").empty());
}

TEST_CASE("noren does not listen twice on one address, nor talk to itself") {
    const auto first = [](std::string_view text) {
        const auto all = mistakes(text);
        return all.size() == 1 ? all.front() : std::to_string(all.size()) + " mistakes";
    };
    CHECK(first("listen: ':9464'\n") ==
          "noren.yaml:1: listen: found \"[::]:9464\" while listen is \":9464\", expected two different "
          "addresses");
    CHECK(first("listen: 10.0.0.1:80\nops: {listen: '10.0.0.2:80'}\n") == "0 mistakes");
    CHECK(
        first("listen: 10.0.0.1:80\nops: {listen: '10.0.0.1:80'}\n").starts_with("noren.yaml:2: ops.listen"));
    CHECK(first("listen: ':0'\nops: {listen: ':0'}\n") == "0 mistakes");
    CHECK(first("listen: ':8000'\n") ==
          "noren.yaml:1: listen: found \"http://127.0.0.1:8000\" while listen is \":8000\", expected the "
          "address of "
          "the engine, not of noren itself");
    CHECK(first("listen: '127.0.0.1:8000'\n").starts_with("noren.yaml:1: listen"));
    CHECK(first("listen: '10.0.0.1:8000'\n") == "0 mistakes");
    CHECK(first("upstream: {url: 'http://localhost:8080'}\n").starts_with("noren.yaml:1: upstream.url"));
    CHECK(first("listen: '127.0.0.1:80'\nupstream: {url: 'http://localhost'}\n")
              .starts_with("noren.yaml:2: upstream.url"));
    CHECK(first("listen: '10.0.0.1:80'\nupstream: {url: 'http://localhost'}\n") == "0 mistakes");
    CHECK(first("upstream: {url: 'http://engine:8080'}\n") == "0 mistakes");
    CHECK(first("upstream: {url: 'http://[::1]:9464'}\n").starts_with("noren.yaml:1: upstream.url"));
    CHECK(first("listen: 'unix:/a'\nupstream: {url: 'unix:/a'}\n").starts_with("noren.yaml:2: upstream.url"));
    CHECK(first("listen: 'unix:/a'\ncontrol: {socket: /a}\n").starts_with("noren.yaml:2: control.socket"));
    CHECK(first("upstream: {url: 'unix:/a'}\ncontrol: {socket: /a}\n")
              .starts_with("noren.yaml:1: upstream.url"));
}

TEST_CASE("no contradiction is made up from a value that was refused or misspelt") {
    CHECK(mistakes("timeouts: {total: 10s}\nadmission: {queue_timeout: 5}\n").size() == 1);
    CHECK(mistakes("timeouts: {total: 10s}\nadmission: {queue_timeut: 5s}\n").size() == 1);
}

TEST_CASE("a file that cannot be read is told by its name") {
    const TempDir dir;
    const auto told = [](const std::filesystem::path& path) {
        const auto result = load_file(path.string());
        REQUIRE(result.mistakes.size() == 1);
        CHECK(result.mistakes.front().file == path.string());
        return result.mistakes.front().found;
    };
    CHECK(told(dir / "missing.yaml") == "no such file");
    CHECK(told(dir / "") == "a directory");
    CHECK(told("") == "no such file");
    CHECK(told("/dev/null") == "a pipe, socket or device");
    REQUIRE(::mkfifo((dir / "pipe").c_str(), 0600) == 0);
    CHECK(told(dir / "pipe") == "a pipe, socket or device");
    std::filesystem::create_symlink(dir / "loop", dir / "loop");
    CHECK(told(dir / "loop").starts_with("a file that cannot be read ("));
    write_file(dir / "big.yaml", std::string(1024 * 1024, '#') + '\n');
    CHECK(told(dir / "big.yaml") == "more than 1MiB");
}

TEST_CASE("a file is loaded through its path") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "workers: 3\n");
    CHECK(load_file((dir / "noren.yaml").string()).config->workers == 3);
    write_file(dir / "full.yaml", "workers: 3\n" + std::string(1024 * 1024 - 11, '#'));
    CHECK(load_file((dir / "full.yaml").string()).ok());
    write_file(dir / "noren.yaml", "workers: many\n");
    const auto result = load_file((dir / "noren.yaml").string());
    CHECK(result.mistakes.front().to_string() ==
          (dir / "noren.yaml").string() +
              ":1: workers: found \"many\", expected a whole number from 0 to 256");
}
