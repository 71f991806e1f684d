#include "proxy/ops/control_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/raw_client.hpp"
#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

using test::RawClient;
using test::TempDir;

struct Instance {
    explicit Instance(std::string p, std::chrono::milliseconds patience = std::chrono::seconds(10))
        : path(std::move(p)),
          control(
              io, path,
              [this](std::string_view command) {
                  commands.emplace_back(command);
                  if (command == "throw") throw std::runtime_error("went wrong");
                  if (command == "no text") throw std::runtime_error("at \xff");
                  return "{\"ok\":true,\"did\":\"" + std::string(command) + "\"}";
              },
              patience) {
        control.start();
    }

    std::string say(const std::string& text) {
        RawClient client(io, path);
        client.say(text);
        return client.hears_out();
    }

    asio::io_context io;
    std::string path;
    std::vector<std::string> commands;
    ControlSocket control;
};

mode_t mode_of(const std::string& path) {
    struct stat found{};
    REQUIRE(::lstat(path.c_str(), &found) == 0);
    return found.st_mode;
}

int listening_socket(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd, 1) == 0);
    return fd;
}

}  // namespace

TEST_CASE("a command gets its answer as one line, then the end") {
    TempDir dir;
    Instance noren((dir / "control.sock").string());
    CHECK(noren.say("{\"command\":\"status\"}\n") == "{\"ok\":true,\"did\":\"status\"}\n");
    CHECK(noren.say("{\"command\":\"drain\",\"later\":\"more\"}\n") == "{\"ok\":true,\"did\":\"drain\"}\n");
    CHECK(noren.commands == std::vector<std::string>{"status", "drain"});
}

TEST_CASE("the end of the input ends the line too") {
    TempDir dir;
    Instance noren((dir / "control.sock").string());
    RawClient client(noren.io, noren.path);
    client.say("{\"command\":\"ready\"}");
    client.finish();
    CHECK(client.hears_out() == "{\"ok\":true,\"did\":\"ready\"}\n");
}

TEST_CASE("what is no command is told what one looks like, and does nothing") {
    TempDir dir;
    Instance noren((dir / "control.sock").string());
    for (const char* line :
         {"\n", "reload\n", "{}\n", "[\"reload\"]\n", "{\"command\":1}\n", "{\"command\":\"\"}\n",
          "{\"command\":\"reload\"\n", "{\"command\":\"reload\"} x\n", "\xff\n"}) {
        INFO(line);
        const std::string answer = noren.say(line);
        CHECK(answer.starts_with("{\"ok\":false,\"message\":\"expected one line of JSON"));
        CHECK(answer.ends_with("\n"));
    }
    CHECK(noren.commands.empty());
}

TEST_CASE("a line without an end is refused when it is too long") {
    TempDir dir;
    Instance noren((dir / "control.sock").string());
    CHECK(noren.say(std::string(65 * 1024, 'x')).find("longer than 64 KiB") != std::string::npos);
}

TEST_CASE("a command that fails says so and the socket goes on") {
    TempDir dir;
    Instance noren((dir / "control.sock").string());
    CHECK(noren.say("{\"command\":\"throw\"}\n") == "{\"ok\":false,\"message\":\"went wrong\"}\n");
    CHECK(noren.say("{\"command\":\"no text\"}\n") == "{\"ok\":false,\"message\":\"at \xef\xbf\xbd\"}\n");
    CHECK(noren.say("{\"command\":\"x\"}\n") == "{\"ok\":true,\"did\":\"x\"}\n");
}

TEST_CASE("a client that says nothing is cut off, one that leaves is forgotten") {
    TempDir dir;
    Instance noren((dir / "control.sock").string(), std::chrono::milliseconds(30));
    CHECK(noren.say("").empty());
    RawClient leaves(noren.io, noren.path);
    leaves.close();
    RawClient half(noren.io, noren.path);
    half.finish();
    CHECK(half.hears_out().empty());
    CHECK(noren.commands.empty());
}

TEST_CASE("the socket is its user's alone whatever the umask, which stays as it is") {
    TempDir dir;
    const mode_t before = ::umask(0);
    Instance noren((dir / "control.sock").string());
    CHECK((mode_of(noren.path) & 0777) == 0600);
    CHECK(::umask(before) == 0);
}

TEST_CASE("a missing folder is made") {
    TempDir dir;
    Instance noren((dir / "run/noren/control.sock").string());
    CHECK(noren.say("{\"command\":\"x\"}\n") == "{\"ok\":true,\"did\":\"x\"}\n");
}

TEST_CASE("a folder that cannot be made is named") {
    TempDir dir;
    test::write_file(dir / "file", "");
    CHECK_THROWS_WITH(
        Instance((dir / "file/control.sock").string()),
        Catch::Contains("cannot listen on the control socket") && Catch::Contains("file/control.sock"));
    CHECK_THROWS_WITH(Instance((dir / std::string(120, 'x')).string()), Catch::Contains("xxx"));
}

TEST_CASE("a socket left over from a crash is replaced") {
    TempDir dir;
    const std::string path = (dir / "control.sock").string();
    ::close(listening_socket(path));
    REQUIRE(S_ISSOCK(mode_of(path)));
    Instance noren(path);
    CHECK(noren.say("{\"command\":\"x\"}\n") == "{\"ok\":true,\"did\":\"x\"}\n");
}

TEST_CASE("a living instance keeps its socket") {
    TempDir dir;
    Instance first((dir / "control.sock").string());
    CHECK_THROWS_WITH(Instance(first.path), Catch::Contains("in use"));
    CHECK(first.say("{\"command\":\"x\"}\n") == "{\"ok\":true,\"did\":\"x\"}\n");
}

TEST_CASE("an instance that hangs with a full backlog is alive") {
    TempDir dir;
    const std::string path = (dir / "control.sock").string();
    const int hanging = listening_socket(path);
    asio::io_context io;
    std::vector<int> backlog;
    for (bool room = true; room;) {
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const asio::local::stream_protocol::endpoint there(path);
        room = ::connect(fd, there.data(), static_cast<socklen_t>(there.size())) == 0;
        backlog.push_back(fd);
    }
    CHECK_THROWS_WITH(Instance(path), Catch::Contains("in use"));
    CHECK(S_ISSOCK(mode_of(path)));
    for (const int fd : backlog)
        ::close(fd);
    ::close(hanging);
}

TEST_CASE("a file that is no socket is never replaced") {
    TempDir dir;
    const auto path = dir / "noren.yaml";
    test::write_file(path, "listen: :8080\n");
    CHECK_THROWS_WITH(Instance(path.string()), Catch::Contains("something that is no socket is there"));
    CHECK(std::filesystem::file_size(path) == 14);
}

TEST_CASE("stopping removes the socket, but not another instance's") {
    TempDir dir;
    const std::string path = (dir / "control.sock").string();
    Instance first(path);
    SECTION("its own") {
        first.control.stop();
        CHECK_FALSE(std::filesystem::exists(path));
    }
    SECTION("one that took the path over") {
        std::filesystem::rename(path, path + ".old");
        Instance second(path);
        first.control.stop();
        CHECK(second.say("{\"command\":\"x\"}\n") == "{\"ok\":true,\"did\":\"x\"}\n");
    }
}

TEST_CASE("another user is refused even where the file lets them in") {
    if (::geteuid() != 0) {
        WARN("not tried: only root can become another user");
        return;
    }
    TempDir dir;
    std::filesystem::permissions(dir / "", std::filesystem::perms(0755));
    Instance noren((dir / "control.sock").string());
    REQUIRE(::chmod(noren.path.c_str(), 0666) == 0);
    int answers[2];
    REQUIRE(::pipe(answers) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const asio::local::stream_protocol::endpoint there(noren.path);
        const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
        const char line[] = "{\"command\":\"drain\"}\n";
        char answer[256];
        const bool said = ::setuid(65534) == 0 &&
                          ::connect(fd, there.data(), static_cast<socklen_t>(there.size())) == 0 &&
                          ::write(fd, line, sizeof line - 1) > 0;
        const ssize_t size = said ? ::read(fd, answer, sizeof answer) : 0;
        ::_exit(size > 0 && ::write(answers[1], answer, static_cast<std::size_t>(size)) == size ? 0 : 1);
    }
    ::close(answers[1]);
    int status = -1;
    for (int turn = 0; turn < 1'000 && ::waitpid(child, &status, WNOHANG) != child; ++turn)
        noren.io.run_for(std::chrono::milliseconds(10));
    std::string answer(256, '\0');
    const ssize_t size = ::read(answers[0], answer.data(), answer.size());
    ::close(answers[0]);
    REQUIRE(status == 0);
    answer.resize(static_cast<std::size_t>(size));
    CHECK(answer.find("only the user that runs noren") != std::string::npos);
    CHECK(noren.commands.empty());
}

}  // namespace noren::proxy
