#pragma once
// A client on loopback that says exactly the bytes it is told to and keeps all that comes back.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include "tests/support/loop.hpp"

namespace noren::test {

namespace asio = boost::asio;

class RawClient {
  public:
    RawClient(asio::io_context& io, const asio::generic::stream_protocol::endpoint& endpoint)
        : io_(io), state_(std::make_shared<State>(io)) {
        state_->socket.connect(endpoint);
        read(state_);
    }
    RawClient(asio::io_context& io, std::uint16_t port)
        : RawClient(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port)) {}
    RawClient(asio::io_context& io, const std::string& unix_path)
        : RawClient(io, asio::local::stream_protocol::endpoint(unix_path)) {}
    ~RawClient() { close(); }
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    void say(std::string text) {
        auto kept = std::make_shared<std::string>(std::move(text));
        asio::async_write(state_->socket, asio::buffer(*kept),
                          [kept, state = state_](const boost::system::error_code&, std::size_t) {});
    }
    void finish() { state_->socket.shutdown(asio::socket_base::shutdown_send); }
    void close() {
        boost::system::error_code ignored;
        state_->socket.close(ignored);
    }

    const std::string& heard() const { return state_->heard; }
    /// The other side has sent its last byte, or reset.
    bool ended() const { return state_->ended; }
    bool was_reset() const { return state_->reset; }

    bool hears(std::string_view text) {
        return run_until(io_, [&] { return heard().find(text) != std::string::npos || ended(); }) &&
               heard().find(text) != std::string::npos;
    }
    /// All that came until the other side ended.
    std::string hears_out() {
        return run_until(io_, [&] { return ended(); }) ? heard() : "the other side does not end: " + heard();
    }

  private:
    struct State {
        explicit State(asio::io_context& io) : socket(io) {}
        asio::generic::stream_protocol::socket socket;
        std::array<char, 16 * 1024> buffer{};
        std::string heard;
        bool ended = false;
        bool reset = false;
    };

    static void read(const std::shared_ptr<State>& state) {
        state->socket.async_read_some(asio::buffer(state->buffer),
                                      [state](const boost::system::error_code& error, std::size_t size) {
                                          state->heard.append(state->buffer.data(), size);
                                          if (!error) return read(state);
                                          state->ended = true;
                                          state->reset = error == asio::error::connection_reset;
                                      });
    }

    asio::io_context& io_;
    std::shared_ptr<State> state_;
};

}  // namespace noren::test
