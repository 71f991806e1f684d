// The last byte of an answer: what is called before it.

#include "tests/sim/wire.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

using namespace sim;

namespace {

/// Both ends of a connection, and how much the reader could have had when the answer was called over.
struct Rig {
    net::io_context io{1};
    tcp::acceptor acceptor{io, tcp::endpoint(net::ip::address_v4::loopback(), 0)};
    tcp::socket reader{io}, writer{io};
    Sleeper sleeper{io.get_executor()};
    std::vector<std::size_t> readable_when_over;

    Rig() {
        reader.connect(acceptor.local_endpoint());
        acceptor.accept(writer);
    }

    Wire wire(const Split& split = {}, const Fault& fault = {}) {
        return {writer, sleeper, fault, split, [this] { readable_when_over.push_back(reader.available()); }};
    }

    /// Runs to its end; all that the reader has then.
    std::size_t run(net::awaitable<void> answer) {
        net::co_spawn(io, std::move(answer), net::detached);
        io.run();
        return reader.available();
    }
};

net::awaitable<void> answer(Wire& wire, Framing framing) {
    co_await wire.head("head\r\n\r\n", framing);
    co_await wire.body("body");
    co_await wire.end("t: v\r\n");
}

}  // namespace

TEST_CASE("an answer is called over once, before its reader can have the last byte") {
    const Framing framing = GENERATE(Framing::chunked, Framing::length);
    const Split split = GENERATE(Split{}, Split{.bytes = 3});
    Rig rig;
    Wire wire = rig.wire(split);
    const std::size_t all = rig.run(answer(wire, framing));
    CHECK(all == (framing == Framing::chunked
                      ? std::string_view("head\r\n\r\n4\r\nbody\r\n0\r\nt: v\r\n\r\n").size()
                      : std::string_view("head\r\n\r\nbody").size()));
    REQUIRE(rig.readable_when_over.size() == 1);
    CHECK(rig.readable_when_over[0] < all);
    CHECK(rig.readable_when_over[0] > 0);
}

TEST_CASE(
    "an answer that ends with the connection is over when that is closed, which is not the wire's to do") {
    Rig rig;
    Wire wire = rig.wire();
    rig.run(answer(wire, Framing::close));
    CHECK(rig.readable_when_over.empty());
}

TEST_CASE("a fault that ends the connection calls the answer over before") {
    for (const char* text : {"cut@2", "reset@2", "no-final-chunk"}) {
        INFO(text);
        Rig rig;
        Wire wire = rig.wire({}, *parse_fault(text));
        rig.run(answer(wire, Framing::chunked));
        CHECK(rig.readable_when_over.size() == 1);
        CHECK_FALSE(rig.writer.is_open());
    }
}
