// The log with readers that are slow, stuck, gone and back again: lines may be lost, and then they are
// counted, but nobody ever waits.

#include "proxy/log/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

using namespace std::chrono_literals;
using test::TempDir;

constexpr auto k_patience = 20s;

class Pipe {
  public:
    Pipe() {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reader_ = ends[0];
        writer_ = ends[1];
    }
    ~Pipe() {
        close_reader();
        ::close(writer_);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int writer() const { return writer_; }
    void close_reader() {
        if (reader_ >= 0) ::close(std::exchange(reader_, -1));
    }
    /// Takes what is there now.
    void drain() {
        ::fcntl(reader_, F_SETFL, O_NONBLOCK);
        std::array<char, 65536> waste;
        while (::read(reader_, waste.data(), waste.size()) > 0)
            ;
    }
    /// The next line; empty if none comes in time.
    std::string line() {
        std::string line;
        pollfd look{reader_, POLLIN, 0};
        char c = 0;
        while (::poll(&look, 1, 20'000) > 0 && ::read(reader_, &c, 1) == 1) {
            if (c == '\n') return line;
            line.push_back(c);
        }
        return {};
    }

  private:
    int reader_ = -1, writer_ = -1;
};

config::Log to_stdout() {
    return {"info", "stdout"};
}

LogOutputs outputs_to(int fd, std::chrono::milliseconds last_words = 50ms) {
    LogOutputs outputs;
    outputs.events = outputs.access_stdout = fd;
    outputs.access_queue = outputs.event_queue = 128 * 1024;
    outputs.last_words = last_words;
    return outputs;
}

bool reaches(const Log& log, std::uint64_t dropped) {
    const auto end = std::chrono::steady_clock::now() + k_patience;
    while (log.dropped() < dropped && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(1ms);
    return log.dropped() >= dropped;
}

/// That the end of the log is held up by a stuck reader for last_words and little more. The bound is wide:
/// what it tells apart is "bounded" from "for ever".
void ends_in_time(std::optional<Log>& log) {
    const auto start = std::chrono::steady_clock::now();
    log.reset();
    CHECK(std::chrono::steady_clock::now() - start < 10s);
}

std::string long_line(int number) {
    return "{\"n\":" + std::to_string(number) + ",\"filler\":\"" + std::string(2'000, 'x') + "\"}";
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

}  // namespace

TEST_CASE("an event is one line of JSON with its fields") {
    Pipe pipe;
    Log log(to_stdout(), outputs_to(pipe.writer()));
    log.event(Level::warning, "the \"engine\" is down", {{"because", "no\nroute \xff"}, {"try", "2"}});
    const auto event = boost::json::parse(pipe.line()).as_object();
    CHECK(event.at("level") == "warning");
    CHECK(event.at("msg") == "the \"engine\" is down");
    CHECK(event.at("because") == "no\nroute \xef\xbf\xbd");
    CHECK(event.at("try") == "2");
    CHECK(event.at("time").as_string().ends_with("Z"));
}

TEST_CASE("events below the level are left out, and the level can change") {
    Pipe pipe, access;
    LogOutputs outputs = outputs_to(pipe.writer());
    outputs.access_stdout = access.writer();
    Log log(to_stdout(), outputs);
    log.event(Level::debug, "one");
    log.set_level(Level::debug);
    log.event(Level::debug, "two");
    log.set_level(Level::off);
    log.event(Level::error, "three");
    log.access("{\"four\":4}");
    CHECK(pipe.line().find("\"two\"") != std::string::npos);
    CHECK(access.line() == "{\"four\":4}");  // the access log has no level
    CHECK(level_of("error") == Level::error);
    CHECK(level_of("nonsense") == Level::info);
}

TEST_CASE("the end writes what is queued") {
    TempDir dir;
    const auto path = dir / "logs/access.jsonl";
    {
        Log log({"info", path.string()});
        for (int i = 0; i < 5'000; ++i)
            log.access("{\"n\":" + std::to_string(i) + "}");
    }
    const auto lines = lines_of(path);
    REQUIRE(lines.size() == 5'000);
    CHECK(lines.front() == "{\"n\":0}");
    CHECK(lines.back() == "{\"n\":4999}");
}

TEST_CASE("an access log that cannot be opened is named") {
    TempDir dir;
    test::write_file(dir / "file", "");
    CHECK_THROWS_WITH(Log({"info", (dir / "file/access.jsonl").string()}),
                      Catch::Contains("cannot open the access log") && Catch::Contains("file/access.jsonl"));
}

TEST_CASE("access off: lines go nowhere and count as nothing") {
    Pipe pipe;
    Log log({"info", "off"}, outputs_to(pipe.writer()));
    log.access("{}");
    log.event(Level::info, "x");
    CHECK(pipe.line().find("\"x\"") != std::string::npos);
    CHECK(log.dropped() == 0);
}

TEST_CASE("a reader that is gone costs lines, which are counted, and no signal ends the process") {
    Pipe pipe;
    pipe.close_reader();
    std::optional<Log> log(std::in_place, to_stdout(), outputs_to(pipe.writer()));
    for (int i = 0; i < 10; ++i)
        log->access("{}");
    log->event(Level::info, "x");
    CHECK(reaches(*log, 11));
    ends_in_time(log);
}

TEST_CASE("a descriptor that is closed from the start costs every line, at once") {
    std::optional<Log> log(std::in_place, to_stdout(), outputs_to(-1, 1h));
    for (int i = 0; i < 10; ++i)
        log->access("{}");
    CHECK(reaches(*log, 10));
    ends_in_time(log);
}

TEST_CASE("a descriptor that cannot be written to costs every line, at once") {
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    std::optional<Log> log(std::in_place, to_stdout(), outputs_to(fd, 1h));
    ::close(fd);
    for (int i = 0; i < 10; ++i)
        log->access("{}");
    CHECK(reaches(*log, 10));
    ends_in_time(log);
}

TEST_CASE("a full disk costs lines until there is room again") {
    const int fd = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
    Log log(to_stdout(), outputs_to(fd));
    ::close(fd);
    for (int i = 0; i < 10; ++i)
        log.access("{}");
    CHECK(reaches(log, 10));
}

TEST_CASE("a reader that does not read delays neither who logs nor the end") {
    Pipe pipe;
    std::optional<Log> log(std::in_place, to_stdout(), outputs_to(pipe.writer()));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1'000; ++i)
        log->access(long_line(i));  // 2 MB: far more than a pipe and the queue hold
    CHECK(std::chrono::steady_clock::now() - start < 5s);
    CHECK(reaches(*log, 800));
    ends_in_time(log);
}

TEST_CASE("a reader that reads again gets whole lines again") {
    Pipe pipe;
    Log log(to_stdout(), outputs_to(pipe.writer()));
    for (int i = 0; i < 1'000; ++i)
        log.access(long_line(i));
    REQUIRE(reaches(log, 800));
    for (int i = 0; i < 200; ++i) {
        log.access("{\"again\":1}");
        std::string line = pipe.line();
        const auto object = boost::json::parse(line).as_object();
        if (object.contains("again")) return;
    }
    FAIL("nothing that was logged after the reader had come back");
}

TEST_CASE("a terminal that takes nothing any more, with the write already begun, delays the end no longer") {
    // poll() calls a terminal writable when it takes a few bytes; the write of a line then blocks.
    int master = -1, slave = -1;
    REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
    std::optional<Log> log(std::in_place, to_stdout(), outputs_to(slave));
    for (int i = 0; i < 200; ++i)
        log->access(long_line(i));
    CHECK(reaches(*log, 100));
    ends_in_time(log);
    ::close(slave);
    ::close(master);
}

TEST_CASE("a stuck access log does not hold up events") {
    Pipe stuck, events;
    LogOutputs outputs = outputs_to(stuck.writer());
    outputs.events = events.writer();
    Log log(to_stdout(), outputs);
    for (int i = 0; i < 1'000; ++i)
        log.access(long_line(i));
    log.event(Level::info, "still here");
    CHECK(events.line().find("still here") != std::string::npos);
}

TEST_CASE("a line that was cut by giving up does not swallow the next") {
    // The reader takes a part of a long line, then goes away and comes back, as a restarted log shipper.
    TempDir dir;
    const std::string fifo = (dir / "fifo").string();
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    Log log({"info", fifo});
    log.access("{\"long\":\"" + std::string(300'000, 'x') + "\"}");
    std::array<char, 5'000> part{};
    pollfd look{reader, POLLIN, 0};
    REQUIRE(::poll(&look, 1, 20'000) == 1);
    REQUIRE(::read(reader, part.data(), part.size()) > 0);
    ::close(reader);
    REQUIRE(reaches(log, 1));
    reader = ::open(fifo.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    log.access("{\"n\":1}");
    log.access("{\"n\":2}");
    std::string all;
    look.fd = reader;
    while (all.find("{\"n\":2}\n") == std::string::npos && ::poll(&look, 1, 20'000) == 1) {
        const ssize_t size = ::read(reader, part.data(), part.size());
        if (size <= 0) break;
        all.append(part.data(), static_cast<std::size_t>(size));
    }
    ::close(reader);
    CHECK(all.find("\n{\"n\":1}\n{\"n\":2}\n") != std::string::npos);
}

}  // namespace noren::proxy
