#include "tests/bench/load/watch.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <catch2/catch.hpp>

namespace {

using load::Watch;
using namespace std::chrono_literals;

struct Pair {
    boost::asio::io_context io{1};
    boost::asio::local::stream_protocol::socket other{io};
    Watch::Socket socket{io};

    Pair() {
        boost::asio::local::stream_protocol::socket ours(io);
        boost::asio::local::connect_pair(ours, other);
        socket = std::move(ours);
    }
};

const auto k_past = load::Clock::now() - 1s, k_future = load::Clock::now() + 24h;

}  // namespace

TEST_CASE("a deadline that passes closes the socket and says which it was") {
    Pair pair;
    Watch watch(pair.socket);
    watch.whole(Watch::Why::total, k_future);
    watch.phase(Watch::Why::silence, k_past);
    pair.io.poll();
    CHECK_FALSE(pair.socket.is_open());
    CHECK(watch.fired() == Watch::Why::silence);
    CHECK(load::error_of(watch.fired()) == "silence_timeout");
}

TEST_CASE("the earliest deadline wins") {
    Pair pair;
    Watch watch(pair.socket);
    watch.phase(Watch::Why::first_byte, k_past);
    watch.whole(Watch::Why::leave, k_past - 1s);
    pair.io.poll();
    CHECK(watch.fired() == Watch::Why::leave);
    CHECK(load::error_of(watch.fired()).empty());
}

TEST_CASE("a deadline that was moved before its timer was seen does nothing") {
    Pair pair;
    Watch watch(pair.socket);
    watch.phase(Watch::Why::first_byte, k_past);
    watch.phase(Watch::Why::silence, k_future);
    pair.io.poll();
    CHECK(pair.socket.is_open());
    CHECK(watch.fired() == Watch::Why::none);
    watch.phase(Watch::Why::silence, k_past);
    pair.io.poll();
    CHECK(watch.fired() == Watch::Why::silence);
}

TEST_CASE("a timer that ran out just as its request ended leaves the next one's socket alone") {
    Pair pair;
    bool seen_open = false;
    boost::asio::steady_timer before(pair.io, k_past - 1s);
    auto watch = std::make_unique<Watch>(pair.socket);
    watch->phase(Watch::Why::silence, k_past);
    // Both handlers are ready in the same turn; this one runs first and ends the request.
    before.async_wait([&](const boost::system::error_code&) {
        watch.reset();
        seen_open = pair.socket.is_open();
    });
    pair.io.poll();
    CHECK(seen_open);
    CHECK(pair.socket.is_open());
}
