#include "config/watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

#include "config/watch_points.hpp"
#include "tests/support/temp_dir.hpp"

// The kernel queues an inotify event before the call that causes it returns, so nothing here waits.

namespace config = noren::config;
namespace fs = std::filesystem;
using noren::test::TempDir;
using noren::test::write_file;

namespace {

/// A watcher that takes a missing file for a blank one, as that of the limit.
config::FileWatcher::Read missing_is_blank() {
    return [](const std::string& path) -> std::optional<std::string> {
        std::ifstream file(path);
        return std::string(std::istreambuf_iterator<char>(file), {});
    };
}

using Content = std::optional<std::string>;

/// What a loop around the watcher would get now: it looks only if an event says so.
Content on_events(config::FileWatcher& watcher) {
    pollfd waiting{watcher.fd(), POLLIN, 0};
    if (::poll(&waiting, 1, 0) != 1 || !watcher.drain_events()) return std::nullopt;
    return watcher.changed_content();
}

/// The volume of a ConfigMap as the kubelet writes it (AtomicWriter).
class ConfigMapVolume {
  public:
    explicit ConfigMapVolume(fs::path directory, const std::string& text) : directory_(std::move(directory)) {
        fs::create_directory(directory_);
        publish(text);
        fs::create_symlink("..data/noren.yaml", file());
    }

    fs::path file() const { return directory_ / "noren.yaml"; }

    void publish(const std::string& text) {
        const std::string next = "..2024_" + std::to_string(++version_);
        fs::create_directory(directory_ / next);
        write_file(directory_ / next / "noren.yaml", text);
        fs::create_symlink(next, directory_ / "..data_tmp");
        fs::rename(directory_ / "..data_tmp", directory_ / "..data");
        if (!current_.empty()) fs::remove_all(directory_ / current_);
        current_ = next;
    }

  private:
    fs::path directory_;
    std::string current_;
    int version_ = 0;
};

/// A writer that keeps the file open.
class OpenFile {
  public:
    explicit OpenFile(const fs::path& path) : fd_(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)) {
        REQUIRE(fd_ >= 0);
    }
    ~OpenFile() { ::close(fd_); }
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;

    void append(std::string_view text) {
        REQUIRE(::write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }

  private:
    int fd_;
};

}  // namespace

TEST_CASE("a ConfigMap is followed over swap after swap") {
    const TempDir dir;
    ConfigMapVolume volume(dir / "etc", "one");
    config::FileWatcher watcher(volume.file().string(), "one");
    REQUIRE(watcher.fd() >= 0);
    CHECK(on_events(watcher) == std::nullopt);
    volume.publish("two");
    CHECK(on_events(watcher) == "two");
    volume.publish("three");
    CHECK(on_events(watcher) == "three");
    volume.publish("four");
    volume.publish("five");
    CHECK(on_events(watcher) == "five");
    CHECK(on_events(watcher) == std::nullopt);
}

TEST_CASE("an atomic rename is seen, again and again") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "0");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "0");
    for (int i = 1; i <= 5; ++i) {
        write_file(dir / "new.tmp", std::to_string(i));
        CHECK(on_events(watcher) == std::nullopt);
        fs::rename(dir / "new.tmp", dir / "noren.yaml");
        CHECK(on_events(watcher) == std::to_string(i));
    }
}

TEST_CASE("an in-place edit is seen") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    write_file(dir / "noren.yaml", "two");
    CHECK(on_events(watcher) == "two");
    write_file(dir / "noren.yaml", "three");
    CHECK(on_events(watcher) == "three");
}

TEST_CASE("an editor that renames the old file away and writes a new one is followed") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    for (const std::string text : {"two", "three"}) {
        fs::rename(dir / "noren.yaml", dir / "noren.yaml~");
        write_file(dir / "noren.yaml", text);
        CHECK(on_events(watcher) == text);
        fs::remove(dir / "noren.yaml~");
        CHECK(on_events(watcher) == std::nullopt);
    }
}

TEST_CASE("a deleted file keeps the old content in force until it is back") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    fs::remove(dir / "noren.yaml");
    CHECK(watcher.drain_events());
    CHECK(watcher.changed_content() == std::nullopt);
    write_file(dir / "noren.yaml", "two");
    CHECK(on_events(watcher) == "two");
}

TEST_CASE("a directory that goes and comes back is watched again") {
    const TempDir dir;
    fs::create_directories(dir / "etc/noren");
    write_file(dir / "etc/noren/noren.yaml", "one");
    config::FileWatcher watcher((dir / "etc/noren/noren.yaml").string(), "one");

    SECTION("deleted, and created again") {
        fs::remove_all(dir / "etc");
        CHECK(watcher.drain_events());
        CHECK(watcher.changed_content() == std::nullopt);
        fs::create_directory(dir / "etc");
        CHECK(on_events(watcher) == std::nullopt);
        fs::create_directory(dir / "etc/noren");
        CHECK(on_events(watcher) == std::nullopt);
    }
    SECTION("moved away, and another one moved there") {
        fs::rename(dir / "etc/noren", dir / "etc/old");
        CHECK(watcher.drain_events());
        CHECK(watcher.changed_content() == std::nullopt);
        fs::create_directory(dir / "etc/next");
        fs::rename(dir / "etc/next", dir / "etc/noren");
        CHECK(on_events(watcher) == std::nullopt);
    }
    write_file(dir / "etc/noren/noren.yaml", "two");
    CHECK(on_events(watcher) == "two");
    write_file(dir / "etc/noren/noren.yaml", "three");
    CHECK(on_events(watcher) == "three");
}

TEST_CASE("a file that is not there yet is seen when it comes") {
    const TempDir dir;
    config::FileWatcher watcher((dir / "etc/noren.yaml").string(), "");
    CHECK(watcher.changed_content() == std::nullopt);
    fs::create_directory(dir / "etc");
    CHECK(on_events(watcher) == std::nullopt);
    write_file(dir / "etc/noren.yaml", "one");
    CHECK(on_events(watcher) == "one");
}

TEST_CASE("a symlink is followed to a file elsewhere") {
    const TempDir dir;
    fs::create_directory(dir / "far");
    write_file(dir / "far/a.yaml", "a");
    write_file(dir / "far/b.yaml", "b");
    fs::create_symlink("far/a.yaml", dir / "noren.yaml");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "a");
    write_file(dir / "far/a.yaml", "a2");
    CHECK(on_events(watcher) == "a2");
    fs::create_symlink("far/b.yaml", dir / "tmp");
    fs::rename(dir / "tmp", dir / "noren.yaml");
    CHECK(on_events(watcher) == "b");
    write_file(dir / "far/b.yaml", "b2");
    CHECK(on_events(watcher) == "b2");
    write_file(dir / "far/a.yaml", "a3");
    CHECK(on_events(watcher) == std::nullopt);
}

TEST_CASE("the same content is no news, however it was written") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "same");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "same");
    write_file(dir / "noren.yaml", "same");
    CHECK(watcher.drain_events());
    CHECK(watcher.changed_content() == std::nullopt);
    write_file(dir / "tmp", "same");
    fs::rename(dir / "tmp", dir / "noren.yaml");
    CHECK(watcher.drain_events());
    CHECK(watcher.changed_content() == std::nullopt);
}

TEST_CASE("other files of the directory are nobody's business") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    for (int i = 0; i < 2'000; ++i)
        write_file(dir / ("other" + std::to_string(i % 7)), "x");
    CHECK_FALSE(watcher.drain_events());
}

TEST_CASE("a file that is being written is read when its writer closes it") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    {
        OpenFile writer(dir / "noren.yaml");
        writer.append("two: ");
        CHECK_FALSE(watcher.drain_events());
        CHECK(watcher.changed_content() == std::nullopt);  // a poll that falls in the middle
        writer.append("three");
        CHECK_FALSE(watcher.drain_events());
    }
    CHECK(on_events(watcher) == "two: three");
}

TEST_CASE("a writer that never closes is not waited for for ever") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    OpenFile writer(dir / "noren.yaml");
    writer.append("two");
    CHECK_FALSE(watcher.drain_events());
    CHECK(watcher.changed_content() == std::nullopt);
    CHECK(watcher.changed_content() == "two");
}

TEST_CASE("an empty file is believed at the second look") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    write_file(dir / "noren.yaml", "");
    CHECK(watcher.drain_events());
    CHECK(watcher.changed_content() == std::nullopt);
    SECTION("written meanwhile: it was only half an edit") {
        write_file(dir / "noren.yaml", "two");
        CHECK(watcher.changed_content() == "two");
        write_file(dir / "noren.yaml", "");
        CHECK(watcher.changed_content() == std::nullopt);
    }
    SECTION("still empty: it is meant so") {
        CHECK(watcher.changed_content() == "");
        CHECK(watcher.changed_content() == std::nullopt);
    }
}

TEST_CASE("a file that is written by another name is seen") {
    // As a single file that is mounted into a container: its directory is another one than the writer's.
    const TempDir dir;
    fs::create_directory(dir / "etc");
    fs::create_directory(dir / "server");
    write_file(dir / "server/noren.yaml", "one");
    fs::create_hard_link(dir / "server/noren.yaml", dir / "etc/noren.yaml");
    config::FileWatcher watcher((dir / "etc/noren.yaml").string(), "one");
    watcher.drain_events();
    write_file(dir / "server/noren.yaml", "two");
    CHECK(watcher.drain_events());
    CHECK(watcher.changed_content() == "two");
}

TEST_CASE("what events do not show, a look finds") {
    // As on a network mount: memory that is mapped changes without an event.
    const TempDir dir;
    const auto path = dir / "noren.yaml";
    write_file(path, "one");
    config::FileWatcher watcher(path.string(), "one");
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* const memory = ::mmap(nullptr, 3, PROT_WRITE, MAP_SHARED, file, 0);
    REQUIRE(memory != MAP_FAILED);
    watcher.drain_events();
    std::memcpy(memory, "two", 3);
    CHECK_FALSE(watcher.drain_events());
    CHECK(watcher.changed_content() == "two");
    ::munmap(memory, 3);
    ::close(file);
}

TEST_CASE("a log in the same directory is nobody's business") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    std::ofstream log(dir / "access.log");
    log << "opened" << std::endl;
    watcher.drain_events();
    log << "a line" << std::endl;
    pollfd look{watcher.fd(), POLLIN, 0};
    CHECK(::poll(&look, 1, 0) == 0);  // not even looked at
}

TEST_CASE("what changed before the watcher was there is not missed") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "two");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    CHECK(watcher.changed_content() == "two");
}

TEST_CASE("content that came into force by another way is no news") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    write_file(dir / "noren.yaml", "two");
    watcher.remember("two");
    CHECK(on_events(watcher) == std::nullopt);
}

TEST_CASE("without inotify the watcher works by being asked") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    rlimit none = before;
    none.rlim_cur = 0;  // every new descriptor fails with EMFILE, as on a node that has run out
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one");
    const Content unreadable = watcher.changed_content();
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);

    CHECK(watcher.fd() == -1);
    CHECK(unreadable == std::nullopt);
    CHECK_FALSE(watcher.drain_events());
    write_file(dir / "noren.yaml", "two");
    CHECK(watcher.changed_content() == "two");
    CHECK(watcher.changed_content() == std::nullopt);
}

TEST_CASE("a watcher that is told to do without inotify does") {
    const TempDir dir;
    write_file(dir / "noren.yaml", "one");
    config::FileWatcher watcher((dir / "noren.yaml").string(), "one", config::FileWatcher::Events::none);
    CHECK(watcher.fd() == -1);
    write_file(dir / "noren.yaml", "two");
    CHECK_FALSE(watcher.drain_events());
    CHECK(watcher.changed_content() == "two");
}

TEST_CASE("two hundred changes of each kind are all seen") {
    const TempDir dir;
    ConfigMapVolume volume(dir / "map", "start");
    config::FileWatcher map(volume.file().string(), "start");
    write_file(dir / "noren.yaml", "start");
    config::FileWatcher file((dir / "noren.yaml").string(), "start");
    for (int i = 0; i < 200; ++i) {
        const std::string text = "max: " + std::to_string(i);
        volume.publish(text);
        REQUIRE(on_events(map) == text);
        if (i % 2 == 0) {
            write_file(dir / "noren.yaml", text);
        } else {
            write_file(dir / "next", text);
            fs::rename(dir / "next", dir / "noren.yaml");
        }
        REQUIRE(on_events(file) == text);
    }
}

TEST_CASE("the way to a file is every symlink and its end") {
    const TempDir dir;
    const std::string base = (dir / "").parent_path().string();
    const auto names = [&](const std::string& path) {
        std::string out;
        for (const auto& point : config::watch_points(base + path)) {
            const bool inside = point.directory.starts_with(base);
            out += (inside ? point.directory.substr(base.size()) : point.directory) + '|' + point.name + ' ';
        }
        return out;
    };
    ConfigMapVolume volume(dir / "etc", "x");
    CHECK(names("/etc/noren.yaml") == "/etc|noren.yaml /etc|..data /etc/..2024_1|noren.yaml ");
    CHECK(names("/missing/deeper/noren.yaml") == "|missing ");
    write_file(dir / "file", "");
    CHECK(names("/file/noren.yaml") == "|file ");
    CHECK(names("/etc/../file") == "/etc/..|file ");
    fs::create_symlink("loop", dir / "loop");
    CHECK(config::watch_points(base + "/loop").size() == 41);
    CHECK(config::watch_points("noren.yaml") == std::vector<config::WatchPoint>{{".", "noren.yaml"}});
    CHECK(config::watch_points("").empty());
}

TEST_CASE("where a missing file counts, it is believed at a second look that need not wait") {
    const TempDir dir;
    const fs::path path = dir / "limit";
    write_file(path, "7");
    config::FileWatcher watcher(path.string(), "7", config::FileWatcher::Events::inotify, missing_is_blank());
    CHECK_FALSE(watcher.wants_second_look());
    fs::remove(path);
    CHECK_FALSE(on_events(watcher));
    CHECK(watcher.wants_second_look());
    CHECK(watcher.changed_content() == "");
    CHECK_FALSE(watcher.wants_second_look());
    CHECK_FALSE(watcher.changed_content());

    // Removed and written again, as some editors save: only the new content is news.
    write_file(path, "8");
    CHECK(on_events(watcher) == "8");
    fs::remove(path);
    CHECK_FALSE(on_events(watcher));
    write_file(path, "9");
    CHECK(on_events(watcher) == "9");
    CHECK_FALSE(watcher.wants_second_look());

    // Without events the second look is the next poll.
    config::FileWatcher polled(path.string(), "9", config::FileWatcher::Events::none, missing_is_blank());
    fs::remove(path);
    CHECK_FALSE(polled.changed_content());
    CHECK_FALSE(polled.wants_second_look());
    CHECK(polled.changed_content() == "");
}
