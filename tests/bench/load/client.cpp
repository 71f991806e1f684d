#include "tests/bench/load/client.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/url/parse.hpp>

#include "tests/bench/load/answer_reader.hpp"
#include "tests/sim/token_text.hpp"

namespace load {
namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

/// Closes the socket when the time is over; the operation in progress then fails.
class Fuse {
  public:
    template <typename SocketPointer>
    Fuse(asio::io_context& io, std::chrono::microseconds after, SocketPointer socket,
         std::shared_ptr<bool> blown)
        : timer_(io, after) {
        timer_.async_wait([socket, blown](const boost::system::error_code& error) {
            if (error) return;
            *blown = true;
            boost::system::error_code ignored;
            socket->close(ignored);
        });
    }

  private:
    asio::steady_timer timer_;
};

/// Checks what a noren-sim generated for this id, token by token.
bool is_right_text(const std::string& id, std::string_view text, std::optional<std::uint64_t> tokens) {
    const std::uint64_t key = sim::stream_key(id);
    std::string expected;
    for (std::uint32_t i = 0; tokens ? i < *tokens : expected.size() < text.size(); ++i)
        expected += sim::token_text(key, 0, i);
    return expected == text;
}

/// What the events of one answer came to.
struct Reading {
    std::string text;
    std::optional<std::uint64_t> reported;
    bool end = false, error = false, unparsable = false;
    std::uint64_t fresh = 0;  ///< token events in the bytes just fed

    void take(Api api, std::string_view data) {
        const Told told = read_event(api, data);
        unparsable = unparsable || !told.valid;
        end = end || told.end;
        error = error || told.error;
        if (told.output_tokens) reported = told.output_tokens;
        fresh += !told.text.empty();
        text += told.text;
    }
};

std::string verdict(const AnswerReader& reader, const Reading& reading, const Options& options,
                    const Result& result) {
    if (result.status < 200 || result.status >= 300) return {};
    if (reading.unparsable) return "altered";
    if (reading.error) return "engine_error";
    // Triton has no end marker of its own.
    if (reader.is_event_stream() && !reading.end && options.api != Api::triton) return "no_end_marker";
    const bool known_text = options.verify_text && reader.field("server") == "noren-sim";
    if (known_text && !is_right_text(result.id, reading.text, reading.reported)) return "altered";
    return {};
}

}  // namespace

Target resolve(const std::string& url) {
    if (url.starts_with("unix:")) return {asio::local::stream_protocol::endpoint(url.substr(5)), "localhost"};
    const auto parsed = boost::urls::parse_uri(url);
    if (!parsed || parsed->scheme() != "http")
        throw std::runtime_error("not an http:// or unix: URL: " + url);
    const std::string port = parsed->has_port() ? std::string(parsed->port()) : "80";
    asio::io_context io;
    asio::ip::tcp::resolver resolver(io);
    const auto results = resolver.resolve(parsed->host_address(), port);
    return {results.begin()->endpoint(), std::string(parsed->encoded_host_and_port())};
}

asio::awaitable<std::string> Client::connect() {
    socket_ = std::make_shared<Socket>(io_);
    auto late = std::make_shared<bool>(false);
    const Fuse fuse(io_, options_.connect_timeout, socket_, late);
    const auto [error] = co_await socket_->async_connect(target_.endpoint, tuple_awaitable);
    if (error) {
        socket_.reset();
        co_return *late ? "connect_timeout" : "connect";
    }
    const int on = 1;
    ::setsockopt(socket_->native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    co_return std::string();
}

asio::awaitable<Result> Client::run(const Request& request) {
    Result result;
    result.id = request.id;
    result.start = Clock::now();
    if (!socket_) result.error = co_await connect();
    if (result.error.empty()) co_await exchange(request, result);
    result.end = Clock::now();
    if (!result.error.empty() || result.left || !options_.keep_alive) socket_.reset();
    co_return result;
}

asio::awaitable<void> Client::exchange(const Request& request, Result& result) {
    auto leaving = std::make_shared<bool>(false);
    std::optional<Fuse> leave;
    if (request.leave_after) leave.emplace(io_, *request.leave_after, socket_, leaving);

    std::string head = "POST " + request.path + " HTTP/1.1\r\nHost: " + target_.host +
                       "\r\nContent-Type: application/json\r\nx-request-id: " + request.id +
                       "\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    for (const std::string& line : options_.headers)
        head += line + "\r\n";
    if (!options_.keep_alive) head += "Connection: close\r\n";
    head += "\r\n" + request.body;
    // A failed write shows in the read that follows, where an early answer may be waiting as well.
    co_await asio::async_write(*socket_, asio::buffer(head), tuple_awaitable);

    Reading reading;
    AnswerReader reader([&](std::string_view data) { reading.take(options_.api, data); });
    std::array<char, 16 * 1024> buffer;
    while (!reader.whole()) {
        auto silent = std::make_shared<bool>(false);
        const Fuse fuse(io_, options_.silence_timeout, socket_, silent);
        const auto [error, size] = co_await socket_->async_read_some(asio::buffer(buffer), tuple_awaitable);
        const TimePoint now = Clock::now();
        if (*leaving) {
            result.left = true;
            co_return;
        }
        reading.fresh = 0;
        const bool fine =
            error ? error == asio::error::eof && reader.closed() : reader.feed({buffer.data(), size});
        if (reading.fresh > 0 && reader.is_event_stream()) {
            if (!result.first) result.first = now;
            result.last = now;
            result.events += reading.fresh;
        }
        if (fine) continue;
        result.error = *silent ? "silence" : !reader.head_known() ? "no_answer" : error ? "cut" : "protocol";
        break;
    }
    result.status = reader.head_known() ? reader.status() : 0;
    result.body_bytes = reader.body_bytes();
    result.body_hash = reader.body_hash();
    result.reason = reader.field("x-noren-reason");
    std::uint32_t seconds = 0;
    const std::string_view retry = reader.field("retry-after");
    if (std::from_chars(retry.data(), retry.data() + retry.size(), seconds).ec == std::errc())
        result.retry_after = seconds;
    if (!reader.is_event_stream() && result.error.empty() && result.status / 100 == 2)
        reading.take(options_.api, reader.document());
    result.tokens = reading.reported.value_or(result.events);
    if (result.error.empty()) result.error = verdict(reader, reading, options_, result);
    if (!reader.keeps_alive()) socket_.reset();
}

}  // namespace load
