// Unix sockets on both sides, through the whole relay.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include <catch2/catch.hpp>

#include "tests/integration/scene.hpp"
#include "tests/sim/engine.hpp"
#include "tests/support/noren_under_test.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace std::chrono_literals;
using noren::test::TempDir;
using test::NorenUnderTest;
using test::Peer;

std::string chat(const std::string& extra) {
    return test::chat(3, "x-request-id: fixed\r\nConnection: close\r\n" + extra);
}

unsigned mode_of(const std::string& path) {
    struct stat found{};
    return ::lstat(path.c_str(), &found) == 0 ? found.st_mode & 07777u : 0;
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

auto on(const std::string& path) {
    return [path](auto& config) {
        config.listen = "unix:" + path;
        config.workers = 2;
    };
}

/// A socket file as a crash leaves it: bound once, nobody listens.
void leave_behind(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    ::close(fd);
}

}  // namespace

TEST_CASE("over Unix sockets on both sides: the same bytes, and every gauge back at 0") {
    const TempDir dir;
    sim::Options options;
    options.lone = sim::Pace{1ms, 0ms, false};
    options.created = 1;
    options.keep_truth = true;
    sim::Engine engine(options);
    engine.start();
    const std::string inner_path = (dir / "inner.sock").string();
    const std::string outer_path = (dir / "outer.sock").string();
    NorenUnderTest inner(engine.url(), on(inner_path));
    NorenUnderTest outer("unix:" + inner_path, on(outer_path));
    for (const std::string& request :
         {chat(""), chat("x-sim-tokens: 3000\r\nx-sim-bytes: 600\r\n"), chat("x-sim-close: 1\r\n"),
          test::post_request("/raw/sink", std::string(3'000'000, 'u'), "Connection: close\r\n")}) {
        INFO(request.substr(0, 200));
        Peer direct = Peer::connect(engine.port());
        direct.send(request);
        const std::string wanted = test::body_of(direct.receive_all());
        Peer client = Peer::connect_unix(outer_path);
        client.send(request);
        CHECK((test::body_of(client.receive_all()) == wanted));
    }
    Peer leaver = Peer::connect_unix(outer_path);
    leaver.send(chat("x-sim-ttft-ms: 60000\r\n"));
    REQUIRE(test::arrived(engine, 9));
    leaver.close();
    REQUIRE(engine.wait_for_truths(9, 20s));
    CHECK(engine.truth().back().outcome == "cancelled");
    for (const NorenUnderTest* noren : {&inner, &outer}) {
        CHECK(noren->reaches("noren_inflight_requests", 0));
        CHECK(noren->reaches("noren_client_connections",
                             noren == &inner ? noren->metric("noren_client_connections") : 0));
        CHECK(noren->metric("noren_running_requests") == 0);
        CHECK(noren->metric("noren_upstream_connections{state=\"active\"}") == 0);
    }
}

TEST_CASE("the socket's file has the mode that was asked for, whatever the umask, and goes with noren") {
    const TempDir dir;
    const std::string path = (dir / "noren.sock").string();
    for (const mode_t mask : {mode_t{0}, mode_t{022}, mode_t{077}}) {
        const mode_t before = ::umask(mask);
        {
            NorenUnderTest noren("http://127.0.0.1:1", on(path));
            CHECK(mode_of(path) == 0660);
        }
        CHECK_FALSE(exists(path));
        {
            NorenUnderTest noren("http://127.0.0.1:1", [&](auto& config) {
                on(path)(config);
                config.listen_mode = 0600;
            });
            CHECK(mode_of(path) == 0600);
        }
        ::umask(before);
    }
}

TEST_CASE("a socket left over from a crash is replaced, one that is alive is not") {
    const TempDir dir;
    const std::string path = (dir / "noren.sock").string();
    leave_behind(path);
    NorenUnderTest first("http://127.0.0.1:1", on(path));
    CHECK_THROWS(NorenUnderTest("http://127.0.0.1:1", on(path)));
    Peer client = Peer::connect_unix(path);
    client.send("TRACE / HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(client.receive_until("\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

TEST_CASE("an engine's socket that is not there, or has nobody behind it, is an engine that is down") {
    const TempDir dir;
    const std::string path = (dir / "engine.sock").string();
    NorenUnderTest noren("unix:" + path, [](auto& config) { config.upstream.health_interval = 20ms; });
    const auto answer = [&] {
        Peer client = Peer::connect(noren.port());
        client.send(chat(""));
        return client.receive_all();
    };
    CHECK(answer().starts_with("HTTP/1.1 503 "));
    leave_behind(path);
    CHECK(answer().starts_with("HTTP/1.1 503 "));
    CHECK(noren.reaches("noren_upstream_errors_total{reason=\"connect\"}", 2));
    CHECK(noren.metric("noren_upstream_up") == 0);
}

TEST_CASE("an engine's socket that goes is found out by the first request, not by the next probe") {
    const TempDir dir;
    const std::string path = (dir / "engine.sock").string();
    sim::Engine engine({});
    engine.start();
    auto behind_path =
        std::make_unique<NorenUnderTest>("http://127.0.0.1:" + std::to_string(engine.port()), on(path));
    NorenUnderTest noren("unix:" + path, [](auto& config) { config.upstream.health_interval = 1h; });
    REQUIRE(noren.reaches("noren_upstream_up", 1));
    behind_path.reset();
    REQUIRE_FALSE(exists(path));
    SECTION("there is no file") {}
    SECTION("nobody is behind it") {
        leave_behind(path);
    }
    const auto answer = [&] {
        Peer client = Peer::connect(noren.port());
        client.send(chat(""));
        return client.receive_all();
    };
    CHECK_FALSE(answer().empty());
    REQUIRE(noren.reaches("noren_upstream_up", 0));
    CHECK(answer().starts_with("HTTP/1.1 503 "));
}
