// The ops endpoint with clients that are slow, many, stuck, or waiting for a drain.

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <iterator>
#include <list>
#include <optional>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "tests/unit/proxy/ops_rig.hpp"

namespace noren::proxy {
namespace {

using namespace std::chrono_literals;
using test::body_of;
using test::last_get;
using test::OpsRig;
using test::RawClient;
using test::run_until;
using test::status_of;

const std::string k_get_metrics = "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n";

/// A client that asks and never reads.
class DeafClient {
  public:
    explicit DeafClient(OpsRig& ops) : io_(ops.io), socket_(ops.io) {
        socket_.connect({asio::ip::address_v4::loopback(), ops.port});
        ask();
    }
    void ask() { asio::write(socket_, asio::buffer(k_get_metrics)); }

    /// How much it finds when it reads after all, until the other side's end. Nothing: there was no end.
    std::optional<std::size_t> reads_out() {
        const auto give_up = std::chrono::steady_clock::now() + 20s;
        std::size_t total = 0;
        std::array<char, 65536> waste;
        socket_.non_blocking(true);
        while (std::chrono::steady_clock::now() < give_up) {
            boost::system::error_code error;
            total += socket_.read_some(asio::buffer(waste), error);
            if (error == asio::error::would_block) {
                io_.run_for(1ms);
            } else if (error) {
                return total;
            }
        }
        return std::nullopt;
    }

  private:
    asio::io_context& io_;
    asio::ip::tcp::socket socket_;
};

constexpr std::size_t k_large = 32 * 1024 * 1024;  // more than the kernel buffers for one connection

OpsLimits connections(std::size_t most, std::chrono::milliseconds idle = 30s) {
    return {most, 64, idle};
}

}  // namespace

TEST_CASE("a head that does not come in time is the end of the connection") {
    OpsRig ops(connections(8, 60ms));
    const auto start = std::chrono::steady_clock::now();
    for (const char* beginning : {"", "G", "GET /metrics HTTP/1.1\r\nHost: t\r\nX-Slow: "}) {
        INFO(beginning);
        CHECK(ops.say(beginning).empty());
    }
    // A byte now and then does not buy more time: the limit is for the whole head.
    RawClient drip(ops.io, ops.port);
    asio::steady_timer tap(ops.io);
    std::function<void()> drop = [&] {
        drip.say("x");
        tap.expires_after(20ms);
        tap.async_wait([&](const boost::system::error_code& error) {
            if (!error) drop();
        });
    };
    drop();
    CHECK(run_until(ops.io, [&] { return drip.ended(); }));
    tap.cancel();
    CHECK(std::chrono::steady_clock::now() - start >= 4 * 60ms);
}

TEST_CASE("one connection too many takes the place of the longest idle one") {
    OpsRig ops(connections(3));
    std::list<RawClient> idle;
    for (int i = 0; i < 3; ++i)
        idle.emplace_back(ops.io, ops.port);
    // The first is used once more, and so the second is the longest idle one.
    idle.front().say("GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n");
    REQUIRE(idle.front().hears("healthy\n"));
    CHECK(body_of(ops.get("/metrics")) == "noren_up 1\n");
    CHECK(run_until(ops.io, [&] { return std::next(idle.begin())->ended(); }));
    CHECK_FALSE(idle.front().ended());
    CHECK_FALSE(idle.back().ended());
}

TEST_CASE("clients that never read delay nobody") {
    OpsRig ops;
    ops.metrics.assign(k_large, '#');
    std::list<DeafClient> deaf;
    for (int i = 0; i < 4; ++i)
        deaf.emplace_back(ops);
    for (int i = 0; i < 20; ++i)
        CHECK(body_of(ops.get("/-/healthy")) == "healthy\n");
    const std::string whole = ops.get("/metrics");
    CHECK(body_of(whole).size() == ops.metrics.size());
}

TEST_CASE("a client that never reads is given up after a while") {
    OpsRig ops(connections(8, 50ms));
    ops.metrics.assign(k_large, '#');
    // Nothing shows the end before it reads; on a busy machine that end may be late.
    std::optional<std::size_t> found = k_large;
    for (auto silent = 200ms; found && *found >= k_large && silent < 20s; silent *= 4) {
        DeafClient deaf(ops);
        ops.io.run_for(silent);
        found = deaf.reads_out();
    }
    REQUIRE(found);
    CHECK(*found < k_large);
}

TEST_CASE("clients that never read cannot shut out others") {
    OpsRig ops(connections(4));
    ops.metrics.assign(k_large, '#');
    std::list<DeafClient> deaf;
    for (int i = 0; i < 4; ++i)
        deaf.emplace_back(ops);
    CHECK(body_of(ops.get("/-/healthy")) == "healthy\n");
}

TEST_CASE("a client that asks without end and never reads costs a bounded memory") {
    OpsRig ops;
    ops.metrics.assign(1024 * 1024, '#');
    DeafClient deaf(ops);
    for (int i = 0; i < 100; ++i)
        deaf.ask();
    ops.io.run_for(100ms);
    CHECK(ops.scrapes < 50);  // one answer at a time; the first ones are in the kernel's buffers
}

TEST_CASE("drain-wait without a drain answers at once") {
    OpsRig ops;
    CHECK(body_of(ops.get("/-/drain-wait")) == "not draining\n");
    CHECK(body_of(ops.get("/-/drain-wait?begin_within=0")) == "not draining\n");
}

TEST_CASE("drain-wait waits for the end of a drain") {
    OpsRig ops;
    ops.draining = true;
    RawClient client(ops.io, ops.port);
    client.say(last_get("/-/drain-wait"));
    ops.io.run_for(120ms);
    CHECK(client.heard().empty());
    ops.drained = true;
    CHECK(body_of(client.hears_out()) == "drained\n");
}

TEST_CASE("begin_within waits for a drain to begin, and then for its end") {
    OpsRig ops;
    RawClient client(ops.io, ops.port);
    client.say(last_get("/-/drain-wait?begin_within=30"));
    ops.io.run_for(120ms);
    CHECK(client.heard().empty());
    ops.draining = true;
    ops.io.run_for(120ms);
    CHECK(client.heard().empty());
    SECTION("which comes") {
        ops.drained = true;
        CHECK(body_of(client.hears_out()) == "drained\n");
    }
    SECTION("but it can be called off, and then a new one may begin within the time") {
        ops.draining = false;
        ops.io.run_for(120ms);
        CHECK(client.heard().empty());
        ops.draining = ops.drained = true;
        CHECK(body_of(client.hears_out()) == "drained\n");
    }
}

TEST_CASE("begin_within begins nothing: no drain in time is the answer") {
    OpsRig ops;
    const auto start = std::chrono::steady_clock::now();
    CHECK(body_of(ops.get("/-/drain-wait?begin_within=1")) == "not draining\n");
    CHECK(std::chrono::steady_clock::now() - start >= 1s);
    CHECK_FALSE(ops.draining);
}

TEST_CASE("waiting for a drain takes as long as it takes, whatever the limit for slow clients") {
    OpsRig ops(connections(8, 50ms));
    ops.draining = true;
    RawClient client(ops.io, ops.port);
    client.say(last_get("/-/drain-wait"));
    ops.io.run_for(250ms);
    CHECK_FALSE(client.ended());
    ops.drained = true;
    CHECK(body_of(client.hears_out()) == "drained\n");
}

TEST_CASE("more waiting than allowed is told; one that leaves makes room") {
    OpsRig ops({16, 2, 30s});
    ops.draining = true;
    const std::string wait = last_get("/-/drain-wait");
    RawClient first(ops.io, ops.port), second(ops.io, ops.port);
    first.say(wait);
    second.say(wait);
    ops.io.run_for(20ms);
    CHECK(status_of(ops.say(wait)) == "HTTP/1.1 503 Service Unavailable");
    second.close();
    ops.io.run_for(120ms);
    RawClient third(ops.io, ops.port);
    third.say(wait);
    ops.io.run_for(20ms);
    CHECK(third.heard().empty());
    ops.drained = true;
    CHECK(body_of(first.hears_out()) == "drained\n");
    CHECK(body_of(third.hears_out()) == "drained\n");
}

TEST_CASE("those who wait for a drain keep their place when connections run out") {
    OpsRig ops(connections(2));
    ops.draining = true;
    RawClient waiting(ops.io, ops.port);
    waiting.say(last_get("/-/drain-wait"));
    ops.io.run_for(20ms);
    for (int i = 0; i < 5; ++i)
        CHECK(body_of(ops.get("/metrics")) == "noren_up 1\n");
    ops.drained = true;
    CHECK(body_of(waiting.hears_out()) == "drained\n");
}

TEST_CASE("with every place taken by a wait, one more is turned away and the next finds room again") {
    OpsRig ops(connections(1));
    ops.draining = true;
    RawClient waiting(ops.io, ops.port);
    waiting.say(last_get("/-/drain-wait"));
    ops.io.run_for(20ms);
    CHECK(ops.get("/metrics").empty());
    ops.drained = true;
    CHECK(body_of(waiting.hears_out()) == "drained\n");
    CHECK(body_of(ops.get("/metrics")) == "noren_up 1\n");
}

TEST_CASE("stopping answers those who wait and ends the idle connections") {
    OpsRig ops;
    ops.draining = true;
    RawClient waiting(ops.io, ops.port), idle(ops.io, ops.port);
    waiting.say("GET /-/drain-wait HTTP/1.1\r\nHost: t\r\n\r\n");
    ops.io.run_for(20ms);
    ops.server.stop();
    CHECK(status_of(waiting.hears_out()) == "HTTP/1.1 503 Service Unavailable");
    CHECK(body_of(waiting.heard()) == "the drain is not over\n");
    CHECK(idle.hears_out().empty());
    CHECK_THROWS(RawClient(ops.io, ops.port));
}

TEST_CASE("of requests that are all sent ahead some are answered, and then the connection ends") {
    OpsRig ops;
    std::string many;
    for (int i = 0; i < 100; ++i)
        many += k_get_metrics;
    const std::string all = ops.say(many);
    int answers = 0;
    for (std::size_t at = 0; (at = all.find("HTTP/1.1 200 ", at)) != std::string::npos; ++at)
        ++answers;
    CHECK(answers == 9);
    CHECK(ops.scrapes == 9);
    CHECK(all.find("Connection: close\r\n") > all.rfind("HTTP/1.1 200 "));
}

// With one connection taken per turn, the last of them would wait for as many rounds of scrapes.
TEST_CASE("probes that come together are taken in together, whatever scrapers do meanwhile") {
    constexpr int k_scrapers = 12, k_probes = 16;
    OpsRig ops;
    struct Scraper {
        explicit Scraper(OpsRig& rig) : client(rig.io, rig.port) { client.say(k_get_metrics); }
        void ask_again() {
            if (client.heard().size() == seen || !client.heard().ends_with("noren_up 1\n")) return;
            seen = client.heard().size();
            client.say(k_get_metrics);
        }
        RawClient client;
        std::size_t seen = 0;
    };
    std::list<Scraper> scrapers;
    for (int i = 0; i < k_scrapers; ++i)
        scrapers.emplace_back(ops);
    REQUIRE(run_until(ops.io, [&] { return ops.scrapes == k_scrapers; }));
    std::list<RawClient> probes;
    for (int i = 0; i < k_probes; ++i) {
        probes.emplace_back(ops.io, ops.port);
        probes.back().say("GET /-/healthy HTTP/1.1\r\nHost: t\r\n\r\n");
    }
    CHECK(run_until(ops.io, [&] {
        for (Scraper& scraper : scrapers)
            scraper.ask_again();
        return std::all_of(probes.begin(), probes.end(), [](const RawClient& probe) {
            return probe.heard().find("healthy\n") != std::string::npos;
        });
    }));
    CHECK(ops.scrapes < k_scrapers * k_probes / 2);
}

}  // namespace noren::proxy
