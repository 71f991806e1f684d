#include "proxy/net/listener.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <catch2/catch.hpp>

#include "proxy/net/acceptor.hpp"
#include "proxy/net/socket.hpp"
#include "tests/support/temp_dir.hpp"

namespace noren::proxy::net {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using test::TempDir;
using test::write_file;

config::Address tcp(const std::string& host, std::uint16_t port = 0) {
    return {host, port, {}};
}
config::Address unix_at(const fs::path& path) {
    return {{}, 0, path.string()};
}

/// A socket file, with somebody behind it or nobody.
class UnixSocket {
  public:
    UnixSocket(const fs::path& path, bool listens) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const asio::local::stream_protocol::endpoint here(path.string());
        REQUIRE(::bind(fd_, here.data(), static_cast<socklen_t>(here.size())) == 0);
        if (listens) REQUIRE(::listen(fd_, 0) == 0);
    }
    ~UnixSocket() { ::close(fd_); }
    UnixSocket(const UnixSocket&) = delete;
    UnixSocket& operator=(const UnixSocket&) = delete;

  private:
    int fd_;
};

/// What the action throws while the process gets at most so many new descriptors.
template <typename Action>
std::string thrown_with_few_descriptors(rlim_t count, Action&& action) {
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(next);
    const rlimit few{static_cast<rlim_t>(next) + count, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    std::exception_ptr thrown;
    try {
        action();
    } catch (...) {
        thrown = std::current_exception();
    }
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
    try {
        if (thrown) std::rethrow_exception(thrown);
    } catch (const std::exception& problem) {
        return problem.what();
    }
    return {};
}

bool is_socket_file(const fs::path& path) {
    return fs::is_socket(fs::symlink_status(path));
}

/// Whether a client reaches the listener.
bool accepts(ListenerSet& listeners, const SocketAddress& endpoint) {
    Loop loop;
    Wakeup nobody(loop);
    bool accepted = false;
    ReserveDescriptor reserve;
    const Acceptor acceptor(loop, listeners.take(0), reserve,
                            {[&](const Descriptor&) { accepted = true; }, [](std::string_view) {}});
    const Socket client(loop, endpoint, nobody.waker());
    const TimePoint give_up = Clock::now() + std::chrono::seconds(20);
    while (!accepted && Clock::now() < give_up)
        loop.turn(give_up);
    return accepted;
}

asio::ip::tcp::endpoint loopback(std::uint16_t port) {
    return {asio::ip::address_v4::loopback(), port};
}

}  // namespace

TEST_CASE("a TCP listener is named as bound, with the port the kernel chose") {
    ListenerSet one(tcp("127.0.0.1"), 1);
    CHECK(one.port() != 0);
    CHECK(one.name() == "127.0.0.1:" + std::to_string(one.port()));
    CHECK(accepts(one, loopback(one.port())));
}

TEST_CASE("each worker has a socket of its own on the same port") {
    ListenerSet listeners(tcp("127.0.0.1"), 3);
    for (std::size_t worker = 0; worker < 3; ++worker) {
        const Descriptor listening = listeners.take(worker);
        asio::ip::tcp::endpoint here;
        socklen_t size = static_cast<socklen_t>(here.capacity());
        REQUIRE(::getsockname(listening.number(), here.data(), &size) == 0);
        CHECK(here == loopback(listeners.port()));
    }
}

// SO_REUSEPORT, which workers need among themselves, would let a second noren in as well: the kernel would
// share the clients out between the two.
TEST_CASE("a second set on the same address is refused, also when both begin at the same moment") {
    const ListenerSet first(tcp("127.0.0.1"), 2);
    for (const char* host : {"127.0.0.1", "0.0.0.0", ""}) {
        INFO(host);
        CHECK_THROWS_WITH(ListenerSet(tcp(host, first.port()), 2),
                          Catch::Matchers::Contains("cannot listen on ") &&
                              Catch::Matchers::Contains("Address already in use"));
    }
    int opened = 0;
    for (int round = 0; round < 200; ++round) {
        std::uint16_t port = 0;
        {
            const ListenerSet somewhere(tcp("127.0.0.1"), 1);
            port = somewhere.port();
        }
        std::barrier together(2);
        std::array<std::unique_ptr<ListenerSet>, 2> sets;
        const auto open = [&](std::size_t which) {
            together.arrive_and_wait();
            try {
                sets[which] = std::make_unique<ListenerSet>(tcp("127.0.0.1", port), 4);
            } catch (const boost::system::system_error&) {  // the other was first
            }
            together.arrive_and_wait();  // none is closed before both have tried
        };
        std::thread other(open, 1);
        open(0);
        other.join();
        REQUIRE_FALSE((sets[0] && sets[1]));
        opened += sets[0] || sets[1];
    }
    CHECK(opened > 100);  // now and then somebody else may have taken the port
}

TEST_CASE("every interface means IPv4 clients too") {
    ListenerSet any(tcp(""), 1);
    CHECK(accepts(any, loopback(any.port())));
    ListenerSet six(tcp("::"), 1);
    CHECK(accepts(six, loopback(six.port())));
}

TEST_CASE("an IPv6 address is named in brackets") {
    try {
        ListenerSet six(tcp("::1"), 1);
        CHECK(six.name() == "[::1]:" + std::to_string(six.port()));
    } catch (const boost::system::system_error& error) {
        // A host without IPv6: the address is named as it would stand in the config.
        CHECK(std::string(error.what()).find("[::1]:0") != std::string::npos);
    }
}

TEST_CASE("an address that cannot be had is named") {
    CHECK_THROWS_WITH(ListenerSet(tcp("192.0.2.1", 8080), 1),
                      Catch::Contains("cannot listen on 192.0.2.1:8080"));
    CHECK_THROWS_WITH(ListenerSet(tcp("a.name", 8080), 1), Catch::Contains("cannot listen on a.name:8080"));
    asio::io_context io;
    asio::ip::tcp::acceptor other(io, loopback(0));
    CHECK_THROWS_WITH(ListenerSet(tcp("127.0.0.1", other.local_endpoint().port()), 1),
                      Catch::Contains("in use"));
}

TEST_CASE("workers share one Unix socket, which goes with them") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    {
        ListenerSet listeners(unix_at(path), 2);
        CHECK(listeners.name() == "unix:" + path.string());
        CHECK(is_socket_file(path));
        CHECK(accepts(listeners, asio::local::stream_protocol::endpoint(path.string())));
    }
    CHECK_FALSE(fs::exists(path));
}

TEST_CASE("without descriptors for all workers there is no listener, and a sentence that says why") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    const bool on_tcp = GENERATE(true, false);
    const auto listen = [&] { const ListenerSet listeners(on_tcp ? tcp("127.0.0.1") : unix_at(path), 64); };
    const std::string why = thrown_with_few_descriptors(20, listen);
    CHECK(why.starts_with(on_tcp ? "cannot listen on 127.0.0.1" : "cannot listen on unix:" + path.string()));
    CHECK(why.find("Too many open files") != std::string::npos);
    CHECK_FALSE(fs::exists(path));
    CHECK_NOTHROW(listen());
}

TEST_CASE("a Unix socket left over from a crash is replaced") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    {
        const UnixSocket crashed(path, true);
    }
    REQUIRE(is_socket_file(path));
    ListenerSet listeners(unix_at(path), 1);
    CHECK(accepts(listeners, asio::local::stream_protocol::endpoint(path.string())));
}

TEST_CASE("a Unix socket that somebody answers on stays theirs") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    ListenerSet first(unix_at(path), 1);
    CHECK_THROWS_WITH(ListenerSet(unix_at(path), 1),
                      Catch::Contains("cannot listen on unix:" + path.string()) && Catch::Contains("in use"));
    CHECK(accepts(first, asio::local::stream_protocol::endpoint(path.string())));
}

TEST_CASE("somebody with a full backlog is there, and is not waited for") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    const UnixSocket busy(path, true);
    std::vector<int> backlog;
    const asio::local::stream_protocol::endpoint there(path.string());
    for (bool room = true; room;) {
        backlog.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        room = ::connect(backlog.back(), there.data(), static_cast<socklen_t>(there.size())) == 0;
    }
    CHECK_THROWS_WITH(ListenerSet(unix_at(path), 1), Catch::Contains("in use"));
    CHECK(is_socket_file(path));
    for (const int fd : backlog)
        ::close(fd);
}

TEST_CASE("of two that start at once on one path one gets it, and keeps it") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    for (int round = 0; round < 200; ++round) {
        if (round % 2 == 1) const UnixSocket crashed(path, false);
        std::array<std::unique_ptr<ListenerSet>, 2> sets;
        std::barrier start(2);
        const auto try_to_start = [&](std::size_t i) {
            start.arrive_and_wait();
            try {
                sets[i] = std::make_unique<ListenerSet>(unix_at(path), 1);
            } catch (const boost::system::system_error& refused) {
                if (refused.code() != boost::system::errc::address_in_use) throw;
            }
        };
        std::thread other(try_to_start, 1);
        try_to_start(0);
        other.join();
        INFO("round " << round);
        REQUIRE((sets[0] == nullptr) != (sets[1] == nullptr));
        REQUIRE(accepts(*sets[sets[0] ? 0 : 1], asio::local::stream_protocol::endpoint(path.string())));
    }
    CHECK(fs::is_empty(path.parent_path()));
}

TEST_CASE("one that stops takes no file of one that starts at the same time") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    for (int round = 0; round < 200; ++round) {
        auto first = std::make_unique<ListenerSet>(unix_at(path), 1);
        std::unique_ptr<ListenerSet> second;
        std::barrier start(2);
        std::thread stopping([&] {
            first->take(0).close();  // as when its worker has ended: nobody listens, the file is still there
            start.arrive_and_wait();
            first.reset();
        });
        start.arrive_and_wait();
        second = std::make_unique<ListenerSet>(unix_at(path), 1);
        stopping.join();
        INFO("round " << round);
        REQUIRE(accepts(*second, asio::local::stream_protocol::endpoint(path.string())));
    }
}

TEST_CASE("a folder that somebody else keeps locked is no reason not to start") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    const Descriptor folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(::flock(folder.number(), LOCK_EX) == 0);
    ListenerSet listeners(unix_at(path), 1);
    CHECK(accepts(listeners, asio::local::stream_protocol::endpoint(path.string())));
}

TEST_CASE("what is no socket is never removed") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    const auto refuses = [&] {
        CHECK_THROWS_WITH(ListenerSet(unix_at(path), 1),
                          Catch::Contains("cannot listen on unix:" + path.string()) &&
                              Catch::Contains("something that is no socket is there"));
    };
    SECTION("a plain file") {
        write_file(path, "precious");
        refuses();
        CHECK(fs::file_size(path) == 8);
    }
    SECTION("a directory") {
        fs::create_directory(path);
        refuses();
        CHECK(fs::is_directory(path));
    }
    SECTION("a FIFO") {
        REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
        refuses();
        CHECK(fs::is_fifo(path));
    }
    SECTION("a symlink, even to a socket nobody answers on") {
        {
            const UnixSocket crashed(dir / "real.sock", true);
        }
        fs::create_symlink("real.sock", path);
        refuses();
        CHECK(fs::is_symlink(path));
        CHECK(is_socket_file(dir / "real.sock"));
    }
    SECTION("a symlink to nowhere") {
        fs::create_symlink("nowhere", path);
        refuses();
        CHECK(fs::is_symlink(path));
    }
}

TEST_CASE("a folder that is not there is named") {
    TempDir dir;
    CHECK_THROWS_WITH(ListenerSet(unix_at(dir / "missing/noren.sock"), 1),
                      Catch::Contains("missing/noren.sock") && Catch::Contains("No such file"));
}

TEST_CASE("at the end only a socket of its own is removed") {
    TempDir dir;
    const auto path = dir / "noren.sock";
    auto first = std::make_unique<ListenerSet>(unix_at(path), 1);
    fs::rename(path, dir / "old.sock");
    ListenerSet second(unix_at(path), 1);
    first.reset();
    CHECK(accepts(second, asio::local::stream_protocol::endpoint(path.string())));
}

TEST_CASE("a set that could not be opened leaves nothing behind") {
    const auto open_descriptors = [] {
        std::size_t count = 0;
        for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd"))
            ++count;
        return count;
    };
    TempDir dir;
    write_file(dir / "file", "");
    const std::size_t before = open_descriptors();
    CHECK_THROWS(ListenerSet(unix_at(dir / "file"), 2));
    CHECK_THROWS(ListenerSet(unix_at(dir / "missing/x.sock"), 2));
    CHECK_THROWS(ListenerSet(tcp("192.0.2.1", 80), 2));
    CHECK(open_descriptors() == before);
}

}  // namespace noren::proxy::net
