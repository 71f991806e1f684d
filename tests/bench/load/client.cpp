#include "tests/bench/load/client.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace load {
namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t k_buffer = 16 * 1024;
constexpr int k_slow_receive_buffer = 4096;

void fail(Result& result, std::string_view kind, std::string detail = {}) {
    result.error = kind;
    result.detail = std::move(detail);
}

std::uint64_t fnv(std::string_view bytes, std::uint64_t hash) {
    for (const char c : bytes)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
}

}  // namespace

Client::Exchange::Exchange(const Options& options, const Request& what, Result& into, EventTimes& times_into)
    : request(what),
      result(into),
      times(times_into),
      reader([this, lean = options.lean, api = options.api](const Event& event) {
          if (lean) {
              take_stamped(event);
          } else {
              reading.take(api, event);
          }
      }) {}

void Client::Exchange::take_stamped(const Event& event) {
    const auto sent = static_cast<std::int64_t>(reading.take_stamped(event));
    if (sent == 0) return;
    const std::int64_t delay = std::chrono::nanoseconds(now.time_since_epoch()).count() - sent;
    times.delays.add(static_cast<std::uint64_t>(std::max<std::int64_t>(delay, 0)));
}

bool Client::Exchange::received(std::string_view bytes, TimePoint read_at) {
    any_byte = true;
    now = read_at;
    reading.fresh = 0;
    if (!reader.feed(bytes)) {
        fail(result, "protocol", reader.problem());
        return false;
    }
    if (reading.fresh > 0 && reader.is_event_stream()) {
        // Events of one read came together: each is told an equal part of the time since the one before.
        if (result.last)
            times.gaps.add(static_cast<std::uint64_t>((now - *result.last).count()) / reading.fresh,
                           reading.fresh);
        if (!result.first) result.first = now;
        result.last = now;
        result.events += reading.fresh;
    }
    return !reader.whole();
}

asio::awaitable<Result> Client::run(const Request& request, EventTimes& times) {
    Result result;
    result.id = request.id;
    result.slow = request.slow;
    result.start = Clock::now();
    // A slow reader's small receive window would slow down whoever came next on its connection, and a
    // connection with a wide one is no good to it.
    if (request.slow) disconnect();
    const bool reused = socket_.is_open();
    std::optional<Exchange> exchange(std::in_place, options_, request, result, times);
    co_await attempt(*exchange);
    // An idle connection may be closed by its server at any time (RFC 9112, 9.3.1): every client tries again.
    if (reused && result.error == "no_answer" && !exchange->any_byte) {
        result.error.clear();
        result.detail.clear();
        result.retried = true;
        disconnect();
        exchange.emplace(options_, request, result, times);
        co_await attempt(*exchange);
    }
    result.end = Clock::now();
    conclude(*exchange);
    if (result.left || !result.error.empty() || request.slow || !exchange->reader.keeps_alive() ||
        !options_.keep_alive)
        disconnect();
    co_return result;
}

asio::awaitable<void> Client::attempt(Exchange& exchange) {
    Watch watch(socket_);
    Result& result = exchange.result;
    if (exchange.request.leave_after)
        watch.whole(Watch::Why::leave, result.start + *exchange.request.leave_after);
    if (options_.total_timeout.count() > 0)
        watch.whole(Watch::Why::total, result.start + options_.total_timeout);
    if (!socket_.is_open()) co_await connect(exchange, watch);
    if (result.error.empty()) {
        watch.phase(Watch::Why::first_byte, result.start + options_.first_byte_timeout);
        co_await converse(exchange, watch);
    }
    // Whatever the operation under way said, it was we who ended it.
    if (watch.fired() == Watch::Why::none) co_return;
    result.left = watch.fired() == Watch::Why::leave;
    fail(result, error_of(watch.fired()));
    disconnect();
}

asio::awaitable<void> Client::connect(Exchange& exchange, Watch& watch) {
    watch.phase(Watch::Why::connect, Clock::now() + options_.connect_timeout);
    boost::system::error_code error;
    for (const Target::Endpoint& endpoint : target_.endpoints) {
        disconnect();
        socket_.open(endpoint.protocol(), error);
        if (!error && exchange.request.slow)
            socket_.set_option(asio::socket_base::receive_buffer_size(k_slow_receive_buffer), error);
        if (!error) std::tie(error) = co_await socket_.async_connect(endpoint, tuple_awaitable);
        if (!error || watch.fired() != Watch::Why::none) break;
    }
    if (error) {
        disconnect();
        fail(exchange.result, "connect", error.message());
        co_return;
    }
    const int on = 1;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

asio::awaitable<void> Client::converse(Exchange& exchange, Watch& watch) {
    const std::string message = head_of(exchange.request) + exchange.request.body;
    // A failed write shows in the read that follows, where an early answer may be waiting as well.
    co_await asio::async_write(socket_, asio::buffer(message), tuple_awaitable);

    const bool slow = exchange.request.slow;
    std::array<char, k_buffer> buffer;
    // Ten sips a second, if that makes whole bytes.
    const std::size_t most =
        slow ? std::clamp<std::size_t>(options_.read_rate / 10, 1, buffer.size()) : buffer.size();
    asio::steady_timer pause(socket_.get_executor());
    for (;;) {
        const auto [error, size] =
            co_await socket_.async_read_some(asio::buffer(buffer.data(), most), tuple_awaitable);
        const TimePoint now = Clock::now();
        if (error) {
            if (error == asio::error::eof && exchange.reader.closed()) co_return;
            const bool before_head = !exchange.reader.head_known();
            fail(exchange.result, before_head ? "no_answer" : "cut",
                 error == asio::error::eof ? "closed by the server" : error.message());
            co_return;
        }
        if (!exchange.received({buffer.data(), size}, now)) co_return;
        TimePoint from = now;
        if (slow) {
            from += std::chrono::microseconds(1'000'000 * size / options_.read_rate);
            watch.phase(Watch::Why::silence, from + options_.silence_timeout);
            pause.expires_at(from);
            co_await pause.async_wait(tuple_awaitable);
        }
        watch.phase(Watch::Why::silence, from + options_.silence_timeout);
    }
}

std::string Client::head_of(const Request& request) const {
    std::string head = "POST " + (target_.path.empty() ? request.path : target_.path) +
                       " HTTP/1.1\r\nHost: " + target_.host +
                       "\r\nContent-Type: application/json\r\nx-request-id: " + request.id +
                       "\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    if (options_.verify) head.append(k_ask_digest).append("\r\n");
    if (options_.lean) head += "x-sim-stamp: on\r\n";
    for (const std::string& line : options_.headers)
        head += line + "\r\n";
    if (!options_.keep_alive || request.slow) head += "Connection: close\r\n";
    return head + "\r\n";
}

void Client::conclude(Exchange& exchange) {
    Result& result = exchange.result;
    const AnswerReader& reader = exchange.reader;
    Reading& reading = exchange.reading;
    if (reader.head_known()) result.status = reader.status();
    result.body_bytes = reader.body_bytes();
    result.body_hash = reader.body_hash();
    result.reason = reader.field("x-noren-reason");
    const std::string_view retry = reader.field("retry-after");
    std::uint32_t seconds = 0;
    if (std::from_chars(retry.data(), retry.data() + retry.size(), seconds).ec == std::errc())
        result.retry_after = seconds;
    if (reader.whole() && !reader.is_event_stream() && result.status / 100 == 2 && !options_.lean)
        reading.take(options_.api, {{}, reader.document()});
    // A count reported before a stream broke off may be provisional.
    result.tokens = reading.reported && reader.whole() ? *reading.reported : result.events;
    result.text_hash = k_fnv_basis;
    for (const auto& [choice, text] : reading.texts)
        result.text_hash = fnv(text, result.text_hash);
    if (!result.error.empty() || result.left) return;
    const Expected expected{exchange.request.id, exchange.request.tokens,
                            options_.verify ? &sim_text_ : nullptr, options_.lean};
    Verdict verdict = judge(options_.api, reader, reading, expected);
    result.error = std::move(verdict.error);
    result.detail = std::move(verdict.detail);
    result.checked = verdict.checked;
    result.body_checked = verdict.body_checked;
    result.bytes_altered = verdict.text.altered;
    result.bytes_lost = verdict.text.lost;
    result.bytes_extra = verdict.text.extra;
}

void Client::disconnect() {
    boost::system::error_code ignored;
    socket_.close(ignored);
}

}  // namespace load
