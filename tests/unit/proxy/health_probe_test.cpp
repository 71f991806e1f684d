#include "proxy/upstream/health_probe.hpp"

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "tests/support/no_descriptors.hpp"
#include "tests/support/temp_dir.hpp"

namespace noren::proxy::upstream {
namespace {

namespace asio = boost::asio;

using std::chrono::milliseconds;

/// Answers every request with the same bytes, then closes; without an answer it keeps silent.
template <typename Protocol>
class Engine {
  public:
    Engine(asio::io_context& io, const typename Protocol::endpoint& where) : acceptor_(io, where) {
        accept();
    }

    auto port() const { return acceptor_.local_endpoint().port(); }

    std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    bool silent = false;
    bool hangs_up = false;
    std::function<void()> while_asked;
    std::vector<std::string> requests;

  private:
    struct Visit {
        typename Protocol::socket socket;
        std::string request;
    };

    void accept() {
        acceptor_.async_accept(
            [this](const boost::system::error_code& error, typename Protocol::socket socket) {
                if (error) return;
                serve(visits_.emplace_back(Visit{std::move(socket), {}}));
                accept();
            });
    }
    void serve(Visit& visit) {
        asio::async_read_until(visit.socket, asio::dynamic_buffer(visit.request), "\r\n\r\n",
                               [this, &visit](const boost::system::error_code& error, std::size_t) {
                                   if (error) return;
                                   requests.push_back(visit.request);
                                   if (while_asked) while_asked();
                                   if (!silent) reply(visit);
                               });
    }
    void reply(Visit& visit) {
        boost::system::error_code ignored;
        if (!hangs_up) asio::write(visit.socket, asio::buffer(answer), ignored);
        visit.socket.close(ignored);
    }

    typename Protocol::acceptor acceptor_;
    std::list<Visit> visits_;
};

using TcpEngine = Engine<asio::ip::tcp>;

asio::ip::tcp::endpoint any_port() {
    return {asio::ip::address_v4::loopback(), 0};
}

config::Upstream settings(milliseconds interval = milliseconds(5),
                          milliseconds timeout = milliseconds(5'000)) {
    config::Upstream upstream;
    upstream.health_interval = interval;
    upstream.health_timeout = timeout;
    return upstream;
}

struct Probing {
    Probing(asio::io_context& context, const config::Address& engine, const config::Upstream& upstream)
        : io(context),
          resolver(io),
          probe(loop, resolver, engine, upstream, nullptr, health,
                [this](bool is_up, std::string_view why) { changes.emplace_back(is_up, std::string(why)); }) {
        probe.start();
    }
    /// Runs the probe and the engine by turns.
    template <typename Done>
    bool runs_until(Done&& done, milliseconds limit = milliseconds(20'000)) {
        const auto end = net::Clock::now() + limit;
        while (!done() && net::Clock::now() < end) {
            loop.turn(net::Clock::now() + milliseconds(1));
            if (io.stopped()) io.restart();
            io.poll();
        }
        return done();
    }
    bool becomes(bool wanted) {
        return runs_until([&] { return !changes.empty() && changes.back().first == wanted; }) &&
               health.up() == wanted;
    }
    /// The reason of the last change.
    const std::string& why() const { return changes.back().second; }

    asio::io_context& io;
    net::Loop loop;
    Resolver resolver;
    EngineHealth health;
    std::vector<std::pair<bool, std::string>> changes;
    HealthProbe probe;
};

}  // namespace

TEST_CASE("an answer means up, found by the first probe") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(std::chrono::hours(1)));
    CHECK_FALSE(probing.health.up());
    REQUIRE(probing.becomes(true));
    CHECK(probing.why().empty());
    CHECK(probing.probe.last_error().empty());
    REQUIRE(engine.requests.size() == 1);
    CHECK(engine.requests[0].starts_with(
        "GET /health HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(engine.port()) + "\r\n"));
    CHECK(engine.requests[0].find("Connection: close\r\n") != std::string::npos);
}

TEST_CASE("below 500 is up, from 500 on is down") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    const auto [status, is_up] = GENERATE(table<int, bool>({{200, true},
                                                            {204, true},
                                                            {302, true},
                                                            {404, true},
                                                            {499, true},
                                                            {500, false},
                                                            {503, false},
                                                            {599, false}}));
    engine.answer = "HTTP/1.1 " + std::to_string(status) + " Whatever\r\nContent-Length: 0\r\n\r\n";
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings());
    REQUIRE(probing.becomes(is_up));
    if (!is_up) CHECK(probing.why() == "it answered " + std::to_string(status));
}

TEST_CASE("an engine that refuses, hangs up or talks nonsense is down, with the reason") {
    asio::io_context io;
    auto engine = std::make_unique<TcpEngine>(io, any_port());
    const config::Address address{"127.0.0.1", engine->port(), {}};
    SECTION("refuses") {
        engine.reset();
        Probing probing(io, address, settings());
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "cannot connect: Connection refused");
    }
    SECTION("hangs up") {
        engine->hangs_up = true;
        Probing probing(io, address, settings());
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "it closed the connection without an answer");
    }
    SECTION("stops within its first line") {
        engine->answer = "HTTP/1.1 200";
        Probing probing(io, address, settings());
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "it closed the connection without an answer");
    }
    SECTION("talks nonsense") {
        engine->answer = GENERATE("SSH-2.0-OpenSSH_9.2\r\n", "\r\n\r\n", "HTTP/9 200\r\n\r\n");
        Probing probing(io, address, settings());
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "its answer is not HTTP");
    }
    SECTION("never ends its first line") {
        engine->answer = std::string(100'000, 'x');
        Probing probing(io, address, settings());
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "its answer is not HTTP");
    }
    SECTION("says nothing, from the start on") {
        engine->silent = true;
        Probing probing(io, address, settings(milliseconds(5), milliseconds(20)));
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "no answer within upstream.health_timeout");
    }
}

TEST_CASE("it comes up and goes down with the engine; each change is told once") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    engine.answer = "HTTP/1.1 503 Loading\r\n\r\n";
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings());
    REQUIRE(probing.runs_until([&] { return engine.requests.size() >= 5; }));
    engine.answer = "HTTP/1.1 200 OK\r\n\r\n";
    REQUIRE(probing.becomes(true));
    const std::size_t seen = engine.requests.size();
    REQUIRE(probing.runs_until([&] { return engine.requests.size() >= seen + 5; }));
    engine.answer = "HTTP/1.1 500 Dead\r\n\r\n";
    REQUIRE(probing.becomes(false));
    REQUIRE(probing.changes.size() == 3);
    CHECK(probing.changes[0].first == false);
    CHECK(probing.changes[1].first == true);
}

TEST_CASE("an engine that is up may be slow twice, not three times in a row") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(milliseconds(5), milliseconds(100)));
    REQUIRE(probing.becomes(true));
    engine.silent = true;
    const auto slow_probes = [&](std::size_t count) {
        const std::size_t before = engine.requests.size();
        return probing.runs_until([&] { return engine.requests.size() >= before + count; });
    };
    SECTION("slow for two, then back") {
        REQUIRE(slow_probes(2));
        CHECK_FALSE(probing.probe.last_error().empty());
        engine.silent = false;
        REQUIRE(slow_probes(2));
        engine.silent = true;  // the count begins anew
        REQUIRE(slow_probes(2));
        CHECK(probing.health.up());
        CHECK(probing.changes.size() == 1);
    }
    SECTION("slow for three") {
        const std::size_t before = engine.requests.size();
        REQUIRE(probing.becomes(false));
        CHECK(engine.requests.size() - before <= 4);  // one may have been answered before
        CHECK(engine.requests.size() - before >= 3);
        CHECK(probing.why() == "no answer within upstream.health_timeout");
    }
}

TEST_CASE("a reload is acted on at once, not after the old interval") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(std::chrono::hours(1)));
    REQUIRE(probing.becomes(true));
    config::Upstream changed = settings(std::chrono::hours(1));
    changed.health_path = "/v1/models";
    probing.probe.set(changed, nullptr);
    REQUIRE(probing.runs_until([&] { return engine.requests.size() == 2; }));
    CHECK(engine.requests[1].starts_with("GET /v1/models HTTP/1.1\r\n"));
    probing.probe.set(changed, nullptr);  // the same again: no reason to probe
    probing.runs_until([] { return false; }, milliseconds(100));
    CHECK(engine.requests.size() == 2);
}

TEST_CASE("an engine that a dial found gone is looked at without waiting for the interval") {
    asio::io_context io;
    auto engine = std::make_unique<TcpEngine>(io, any_port());
    Probing probing(io, {"127.0.0.1", engine->port(), {}}, settings(std::chrono::hours(1)));
    probing.health.doubt();  // nothing is known yet: the first probe tells anyway
    REQUIRE(probing.becomes(true));
    SECTION("it is gone") {
        engine.reset();
        CHECK(probing.health.up());
        probing.health.doubt();
        CHECK(probing.health.up());  // the probe decides
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "cannot connect: Connection refused");
    }
    SECTION("it is there all the same") {
        probing.health.doubt();
        REQUIRE(probing.runs_until([&] { return engine->requests.size() == 2; }));
        CHECK(probing.health.up());
        CHECK(probing.changes.size() == 1);
    }
    SECTION("it goes while it is looked at") {
        engine->silent = true;
        probing.health.doubt();
        REQUIRE(probing.runs_until([&] { return engine->requests.size() == 2; }));
        engine.reset();  // hangs up: this look finds it down
        REQUIRE(probing.becomes(false));
    }
}

TEST_CASE("what is doubted during a look makes for another one") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(std::chrono::hours(1)));
    REQUIRE(probing.becomes(true));
    probing.health.doubt();
    engine.while_asked = [&] { probing.health.doubt(); };
    REQUIRE(probing.runs_until([&] { return engine.requests.size() == 2; }));
    engine.while_asked = {};
    CHECK(probing.runs_until([&] { return engine.requests.size() == 3; }));
}

TEST_CASE("a flood of doubts is not a flood of looks") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(std::chrono::hours(1)));
    const auto began = net::Clock::now();
    REQUIRE(probing.becomes(true));
    probing.runs_until(
        [&] {
            for (int i = 0; i < 100; ++i)
                probing.health.doubt();
            return engine.requests.size() >= 5;
        },
        std::chrono::minutes(1));
    REQUIRE(engine.requests.size() == 5);
    CHECK(net::Clock::now() - began >= 4 * milliseconds(250));
}

TEST_CASE("a look that noren itself has no descriptor for says nothing of the engine") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(std::chrono::hours(1)));
    REQUIRE(probing.becomes(true));
    {
        const ::test::NoDescriptors none;
        probing.health.doubt();
        REQUIRE(probing.runs_until([&] { return !probing.probe.last_error().empty(); }));
    }
    CHECK(probing.probe.last_error().starts_with("cannot connect: "));
    CHECK(probing.health.up());
    CHECK(probing.changes.size() == 1);
}

TEST_CASE("without probing the engine counts as up, and probing can be turned on") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    engine.answer = "HTTP/1.1 503 Loading\r\n\r\n";
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings(milliseconds(0)));
    REQUIRE(probing.becomes(true));
    CHECK(engine.requests.empty());
    probing.health.doubt();
    probing.runs_until([] { return false; }, milliseconds(50));
    CHECK(engine.requests.empty());
    CHECK(probing.health.up());
    probing.probe.set(settings(), nullptr);
    REQUIRE(probing.becomes(false));
}

TEST_CASE("an engine on a Unix socket, or behind a name, is probed the same way") {
    asio::io_context io;
    SECTION("socket") {
        test::TempDir dir;
        const std::string path = (dir / "engine.sock").string();
        Engine<asio::local::stream_protocol> engine(io, path);
        Probing probing(io, {"", 0, path}, settings());
        REQUIRE(probing.becomes(true));
        CHECK(engine.requests[0].find("Host: localhost\r\n") != std::string::npos);
    }
    SECTION("name") {
        TcpEngine engine(io, any_port());
        Probing probing(io, {"localhost", engine.port(), {}}, settings());
        REQUIRE(probing.becomes(true));
    }
    SECTION("name that nobody knows") {
        Probing probing(io, {"noren-test.invalid", 80, {}}, settings());
        REQUIRE(probing.becomes(false));
        CHECK(probing.why() == "cannot resolve the host name noren-test.invalid");
    }
}

TEST_CASE("a probe that is destroyed in the middle of its work leaves nothing behind") {
    asio::io_context io;
    TcpEngine engine(io, any_port());
    engine.silent = true;
    Probing probing(io, {"127.0.0.1", engine.port(), {}}, settings());
    REQUIRE(probing.runs_until([&] { return engine.requests.size() == 1; }));
    CHECK(probing.changes.empty());
}

}  // namespace noren::proxy::upstream
