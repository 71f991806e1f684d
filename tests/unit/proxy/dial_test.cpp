#include "proxy/upstream/dial.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>

#include "proxy/net/wakeup.hpp"
#include "tests/support/peer.hpp"

namespace noren::proxy::upstream {
namespace {

namespace asio = boost::asio;

/// Knows one name, and answers when it is told to.
class Names final : public Resolver {
  public:
    using Resolver::Resolver;
    int looked_up = 0;
    std::vector<std::pair<std::string, Found>> open;

  private:
    void look_up(const std::string& host, std::uint16_t, Found found) override {
        ++looked_up;
        open.emplace_back(host, std::move(found));
    }
};

net::SocketAddress at(std::uint16_t port) {
    return asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port);
}

/// A port of loopback that nobody listens at.
std::uint16_t refusing() {
    return ::test::Listener().port();
}

struct Scene {
    /// Until the dial has ended, or for so long.
    std::optional<int> dial(const Resolver::Addresses& addresses, std::chrono::milliseconds most) {
        Dial dial(loop, names, {"engine.test", 1, {}}, nullptr, wakeup.waker());
        const auto end = net::Clock::now() + most;
        for (;;) {
            turn();
            for (auto& [host, found] : std::exchange(names.open, {}))
                found(addresses);
            const std::optional<int> outcome = dial.poll();
            if (outcome == 0) socket.emplace(dial.take());
            if (outcome || net::Clock::now() >= end) return outcome;
        }
    }
    void turn() {
        if (io.stopped()) io.restart();
        io.poll();
        loop.turn(net::Clock::now() + std::chrono::milliseconds(1));
    }
    /// Whom the connection that was made leads to.
    bool leads_to(::test::Listener& listener) {
        REQUIRE(socket);
        ::test::Peer peer = listener.accept();
        peer.send("x");
        char byte = 0;
        for (int i = 0; i < 20'000; ++i) {
            if (socket->read({&byte, 1}).bytes == 1) return byte == 'x';
            turn();
        }
        return false;
    }

    asio::io_context io;
    net::Loop loop;
    Names names{io};
    net::Wakeup wakeup{loop};
    std::optional<net::Socket> socket;
};

}  // namespace

TEST_CASE("a name with an address that does not answer leads to the next one") {
    ::test::Listener silent(0), engine;
    silent.fill_backlog();
    Scene scene;
    CHECK(scene.dial({at(silent.port()), at(engine.port())}, std::chrono::seconds(20)) == 0);
    CHECK(scene.leads_to(engine));
}

TEST_CASE("an address that refuses leads to the next one at once") {
    ::test::Listener engine;
    Scene scene;
    const auto began = net::Clock::now();
    Resolver::Addresses addresses(100, at(refusing()));
    addresses.push_back(at(engine.port()));
    CHECK(scene.dial(addresses, std::chrono::seconds(20)) == 0);
    CHECK(net::Clock::now() - began < 100 * std::chrono::milliseconds(250));
    CHECK(scene.leads_to(engine));
}

TEST_CASE("with none of its addresses answering a dial goes on, with all refusing it ends") {
    ::test::Listener silent(0);
    silent.fill_backlog();
    Scene scene;
    CHECK(scene.dial({at(silent.port()), at(refusing())}, std::chrono::milliseconds(600)) == std::nullopt);
    CHECK(scene.dial({at(refusing()), at(refusing())}, std::chrono::seconds(20)) == ECONNREFUSED);
    CHECK(scene.dial({}, std::chrono::seconds(20)) == EHOSTUNREACH);
}

TEST_CASE("who asks for a name that is being looked up joins in, who comes later asks anew") {
    asio::io_context io;
    net::Loop loop;
    Names names(io);
    std::vector<std::string> told;
    const auto ask = [&](const std::string& host, const std::string& who) {
        names.resolve(host, 1, loop, [&told, who](const Resolver::Addresses& found) {
            told.push_back(who + " " + std::to_string(found.size()));
        });
    };
    const auto turn = [&] {
        if (io.stopped()) io.restart();
        io.poll();
        loop.turn(net::Clock::now());
    };
    ask("a", "first");
    ask("a", "second");
    ask("b", "third");
    turn();
    CHECK(names.looked_up == 2);
    ask("a", "fourth");
    turn();
    REQUIRE(names.looked_up == 2);
    REQUIRE(told.empty());
    for (auto& [host, found] : std::exchange(names.open, {}))
        found(Resolver::Addresses(host == "a" ? 1 : 2, at(1)));
    turn();
    std::sort(told.begin(), told.end());
    CHECK(told == std::vector<std::string>{"first 1", "fourth 1", "second 1", "third 2"});
    ask("a", "fifth");
    turn();
    CHECK(names.looked_up == 3);
}

}  // namespace noren::proxy::upstream
