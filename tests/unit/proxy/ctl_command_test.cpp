#include "proxy/cli/ctl_command.hpp"

#include <sstream>
#include <string>
#include <thread>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "proxy/cli/status_table.hpp"
#include "proxy/ops/control_socket.hpp"
#include "proxy/ops/status.hpp"
#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

struct Said {
    int exit_status;
    std::string out, err;
};

Said ctl(const CtlOptions& options) {
    std::ostringstream out, err;
    const int exit_status = ctl_command(options, out, err);
    return {exit_status, out.str(), err.str()};
}

/// A noren's control socket on a thread of its own, with one answer to everything.
class Noren {
  public:
    Noren(std::string path, std::string answer)
        : control_(io_, path,
                   [this, answer = std::move(answer)](std::string_view command) {
                       asked = command;
                       return answer;
                   }),
          path_(std::move(path)) {
        control_.start();
        thread_ = std::thread([this] { io_.run(); });
    }
    ~Noren() {
        io_.stop();
        thread_.join();
    }
    Said told(const std::string& command, bool json = false) { return ctl({path_, command, json}); }

    std::string asked;  ///< read after the answer has come

  private:
    asio::io_context io_;
    ControlSocket control_;
    std::string path_;
    std::thread thread_;
};

Status busy_status() {
    Status s;
    s.version = "1.2.3";
    s.revision = "abcdef";
    s.uptime_seconds = 11'525.5;
    s.ready = true;
    s.drain = "no";
    s.listen = "0.0.0.0:8080";
    s.ops = "[::]:9464";
    s.engine = "127.0.0.1:8000";
    s.engine_up = true;
    s.workers = 4;
    s.connections = 9;
    s.most_connections = 1000;
    s.memory = {1, 2, 3, 4, 5};
    s.upstream_active = 5;
    s.upstream_idle = 2;
    s.concurrency_limit = 64;
    s.queue_capacity = 128;
    s.running = 5;
    s.waiting = 3;
    s.inflight = 8;
    s.awaiting_first_token = 4;
    s.config_file = "/etc/noren/noren.yaml";
    s.last_reload_at = "2026-11-30T06:00:00.000Z";
    return s;
}

std::string table_of(const Status& status) {
    std::ostringstream out;
    print_status(boost::json::parse(to_json(status)).as_object(), out);
    return out.str();
}

}  // namespace

TEST_CASE("ctl says the command and shows the answer") {
    test::TempDir dir;
    Noren noren((dir / "c.sock").string(), R"({"ok":true,"message":"draining"})");
    const Said said = noren.told("drain");
    CHECK(said.exit_status == 0);
    CHECK(said.out == "draining\n");
    CHECK(said.err.empty());
    CHECK(noren.asked == "drain");
}

TEST_CASE("what was refused goes to stderr, mistakes as a compiler writes them") {
    test::TempDir dir;
    Noren noren((dir / "c.sock").string(),
                R"({"ok":false,"message":"the config has mistakes",)"
                R"("errors":["n.yaml:3: a.b: found \"x\", expected 1","n.yaml:4: c: found d, expected e"]})");
    const Said said = noren.told("reload");
    CHECK(said.exit_status == 1);
    CHECK(said.out.empty());
    CHECK(said.err ==
          "the config has mistakes\n"
          "n.yaml:3: a.b: found \"x\", expected 1\n"
          "n.yaml:4: c: found d, expected e\n");
}

TEST_CASE("a reload shows what changed and what needs a restart") {
    test::TempDir dir;
    Noren noren((dir / "c.sock").string(),
                R"({"ok":true,"message":"the config is taken over","errors":[],)"
                R"("changes":["admission.max_queue: 512 -> 64"],"restart_required":["listen"]})");
    CHECK(noren.told("reload").out ==
          "the config is taken over\n"
          "  admission.max_queue: 512 -> 64\n"
          "needs a restart:\n"
          "  listen\n");
}

TEST_CASE("not ready is exit status 1 with the reason") {
    test::TempDir dir;
    Noren noren((dir / "c.sock").string(), R"({"ok":false,"message":"not ready: engine_down"})");
    const Said said = noren.told("ready");
    CHECK(said.exit_status == 1);
    CHECK(said.err == "not ready: engine_down\n");
}

TEST_CASE("with --json the answer comes as it is, and the exit status still tells") {
    test::TempDir dir;
    const std::string answer = GENERATE(R"({"ok":false,"message":"x","errors":[]})", R"({"ok":true})");
    Noren noren((dir / "c.sock").string(), answer);
    const Said said = noren.told("reload", true);
    CHECK(said.out == answer + "\n");
    CHECK(said.exit_status == (answer == R"({"ok":true})" ? 0 : 1));
}

TEST_CASE("no noren: exit status 3 and the path that was tried") {
    test::TempDir dir;
    const std::string path = (dir / "c.sock").string();
    const Said missing = ctl({path, "status"});
    CHECK(missing.exit_status == 3);
    CHECK(missing.err.find(path) != std::string::npos);
    CHECK(missing.err.find("No such file or directory") != std::string::npos);
    test::write_file(path, "");
    CHECK(ctl({path, "status"}).exit_status == 3);
    CHECK(ctl({"", "status"}).exit_status == 3);
    CHECK(ctl({std::string(200, 'x'), "status"}).err.find("expected 1 to 107 bytes") != std::string::npos);
}

TEST_CASE("a noren that does not answer, or nonsense, is exit status 1") {
    test::TempDir dir;
    const std::string path = (dir / "c.sock").string();
    asio::io_context io;
    asio::local::stream_protocol::acceptor acceptor(io, path);
    SECTION("hangs") {
        const Said said = ctl({path, "status", false, std::chrono::milliseconds(50)});
        CHECK(said.exit_status == 1);
        CHECK(said.err.find("no answer from " + path) != std::string::npos);
    }
    SECTION("closes, or talks nonsense") {
        const std::string answer = GENERATE("", "what?\n", "[1]\n", "{\"ok\":true}");
        std::thread other([&] {
            asio::local::stream_protocol::socket socket = acceptor.accept();
            std::string line;
            asio::read_until(socket, asio::dynamic_buffer(line), '\n');
            asio::write(socket, asio::buffer(answer));
        });
        const Said said = ctl({path, "status"});
        other.join();
        CHECK(said.exit_status == 1);
        CHECK(said.out.empty());
        CHECK(said.err.find("answer from " + path) != std::string::npos);
    }
}

TEST_CASE("ctl status is a table for people") {
    test::TempDir dir;
    Noren noren((dir / "c.sock").string(), R"({"ok":true,"status":)" + to_json(busy_status()) + "}");
    const Said said = noren.told("status");
    CHECK(said.exit_status == 0);
    CHECK(said.out ==
          "noren       1.2.3 (abcdef), up 3h 12m\n"
          "ready       yes\n"
          "drain       no\n"
          "engine      127.0.0.1:8000, up; connections: 5 active, 2 idle\n"
          "running     5 of 64\n"
          "waiting     3 of 128\n"
          "in flight   8; in the engine without output yet: 4\n"
          "listening   0.0.0.0:8080, 9 connections, 4 workers\n"
          "ops         [::]:9464\n"
          "config      /etc/noren/noren.yaml\n"
          "last reload 2026-11-30T06:00:00.000Z, good\n");
}

TEST_CASE("the table says which keys the file does not decide") {
    Status s = busy_status();
    s.stronger = {"admission.max_queue by --max-queue", "listen by NOREN_LISTEN"};
    CHECK(table_of(s).find(
              "\nconfig      /etc/noren/noren.yaml\n"
              "stronger    than the file: admission.max_queue by --max-queue, listen by NOREN_LISTEN\n"
              "last reload") != std::string::npos);
    s.config_file.clear();
    CHECK(table_of(s).find("stronger") == std::string::npos);
}

TEST_CASE("the table says what is wrong") {
    Status s = busy_status();
    s.ready = false;
    s.not_ready_because = {"draining", "engine_down"};
    s.drain = "refusing";
    s.engine_up = false;
    s.engine_error = "it answered 503";
    s.concurrency_limit = 0;
    s.config_file.clear();
    s.last_reload_ok = false;
    s.last_reload_errors = {"n.yaml:3: a: found b, expected c"};
    s.restart_required = {"listen", "workers"};
    const std::string table = table_of(s);
    for (const char* line :
         {"\nready       no: draining, engine_down\n", "\ndrain       refusing\n",
          "\nengine      127.0.0.1:8000, down (it answered 503); connections",
          "\nrunning     5 of any number\n", "\nconfig      no file\n",
          "BAD: the config before it is in force\n            n.yaml:3: a: found b, expected c\n",
          "\nrestart     needed for listen, workers\n"}) {
        INFO(table);
        CHECK(table.find(line) != std::string::npos);
    }
}

TEST_CASE("a limit set by hand is told beside the configured one") {
    Status s = busy_status();
    s.concurrency_limit = 48;
    s.configured_limit = 64;
    s.limit_overridden = true;
    CHECK(table_of(s).find("\nrunning     5 of 48 (until the next reload; configured: 64)\n") !=
          std::string::npos);
    s.concurrency_limit = 0;
    CHECK(table_of(s).find("\nrunning     5 of any number (until the next") != std::string::npos);
    s.limit_overridden = false;
    CHECK(table_of(s).find("\nrunning     5 of any number\n") != std::string::npos);
}

TEST_CASE("the time since the start is told in two units") {
    const auto first_line = [](double seconds) {
        Status s = busy_status();
        s.uptime_seconds = seconds;
        const std::string table = table_of(s);
        return table.substr(0, table.find('\n'));
    };
    CHECK(first_line(0.9) == "noren       1.2.3 (abcdef), up 0s");
    CHECK(first_line(59.9) == "noren       1.2.3 (abcdef), up 59s");
    CHECK(first_line(60) == "noren       1.2.3 (abcdef), up 1m 0s");
    CHECK(first_line(3'599) == "noren       1.2.3 (abcdef), up 59m 59s");
    CHECK(first_line(86'399) == "noren       1.2.3 (abcdef), up 23h 59m");
    CHECK(first_line(200'000) == "noren       1.2.3 (abcdef), up 2d 7h");
}

TEST_CASE("the status of another version of noren is no problem") {
    std::ostringstream out;
    print_status({}, out);
    CHECK(out.str().find("noren       ? (?), up 0s\n") != std::string::npos);
    print_status(boost::json::parse(R"({"engine":3,"admission":[],"config":{"last_reload_errors":"x"},)"
                                    R"("uptime_seconds":"long","ready":"yes"})")
                     .as_object(),
                 out);
    CHECK(out.str().find("engine      ?, down") != std::string::npos);
    out.str("");
    print_status(boost::json::parse(R"({"uptime_seconds":0e+700})").as_object(), out);  // not a number
    CHECK(out.str().find("noren       ? (?), up 0s\n") != std::string::npos);
}

TEST_CASE("the status as JSON holds every figure") {
    Status s = busy_status();
    s.engine_error = "slow";
    s.restart_required = {"listen"};
    s.configured_limit = 96;
    s.limit_overridden = true;
    const auto json = boost::json::parse(to_json(s));
    CHECK(json.at_pointer("/version") == "1.2.3");
    CHECK(json.at_pointer("/revision") == "abcdef");
    CHECK(json.at_pointer("/uptime_seconds") == 11'525.5);
    CHECK(json.at_pointer("/ready") == true);
    CHECK(json.at_pointer("/not_ready_because").as_array().empty());
    CHECK(json.at_pointer("/drain") == "no");
    CHECK(json.at_pointer("/listen") == "0.0.0.0:8080");
    CHECK(json.at_pointer("/ops") == "[::]:9464");
    CHECK(json.at_pointer("/workers") == 4);
    CHECK(json.at_pointer("/connections") == 9);
    CHECK(json.at_pointer("/max_connections") == 1000);
    CHECK(json.at_pointer("/memory_bound/process_bytes") == 1);
    CHECK(json.at_pointer("/memory_bound/connection_bytes") == 2);
    CHECK(json.at_pointer("/memory_bound/waiting_request_bytes") == 3);
    CHECK(json.at_pointer("/memory_bound/running_request_bytes") == 4);
    CHECK(json.at_pointer("/memory_bound/worst_case_bytes") == 5);
    CHECK(json.at_pointer("/engine/address") == "127.0.0.1:8000");
    CHECK(json.at_pointer("/engine/up") == true);
    CHECK(json.at_pointer("/engine/last_error") == "slow");
    CHECK(json.at_pointer("/engine/connections_active") == 5);
    CHECK(json.at_pointer("/engine/connections_idle") == 2);
    CHECK(json.at_pointer("/admission/concurrency_limit") == 64);
    CHECK(json.at_pointer("/admission/queue_capacity") == 128);
    CHECK(json.at_pointer("/admission/running") == 5);
    CHECK(json.at_pointer("/admission/waiting") == 3);
    CHECK(json.at_pointer("/inflight") == 8);
    CHECK(json.at_pointer("/awaiting_first_token") == 4);
    CHECK(json.at_pointer("/admission/configured_limit") == 96);
    CHECK(json.at_pointer("/admission/limit_overridden") == true);
    CHECK(json.at_pointer("/config/file") == "/etc/noren/noren.yaml");
    CHECK(json.at_pointer("/config/last_reload_ok") == true);
    CHECK(json.at_pointer("/config/last_reload_errors").as_array().empty());
    CHECK(json.at_pointer("/config/restart_required/0") == "listen");
    CHECK(to_json(s).find('\n') == std::string::npos);
}

TEST_CASE("the status is valid JSON whatever bytes a file name or an engine holds") {
    Status s = busy_status();
    s.config_file = "/etc/caf\xe9.yaml";
    s.engine = "unix:/run/\xc3";
    s.engine_error = "\xf0\x9f";
    s.listen = "unix:/\xff";
    s.last_reload_errors = {"/etc/caf\xe9.yaml:3: a: found \"\n\", expected c"};
    boost::system::error_code error;
    const auto json = boost::json::parse(to_json(s), error);
    REQUIRE_FALSE(error);
    CHECK(json.at_pointer("/config/file") == "/etc/caf\xef\xbf\xbd.yaml");
    CHECK(json.at_pointer("/engine/address") == "unix:/run/\xef\xbf\xbd");
    CHECK(json.at_pointer("/engine/last_error") == "\xef\xbf\xbd");
    CHECK(json.at_pointer("/listen") == "unix:/\xef\xbf\xbd");
    CHECK(json.at_pointer("/config/last_reload_errors/0") ==
          "/etc/caf\xef\xbf\xbd.yaml:3: a: found \"\n\", expected c");
}

}  // namespace noren::proxy
