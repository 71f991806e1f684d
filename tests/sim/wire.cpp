#include "tests/sim/wire.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <boost/asio/write.hpp>

namespace sim {

namespace {

void append_chunk_line(std::string& out, std::size_t size) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16).ptr;
    out.append(digits.data(), end);
    out += "\r\n";
}

/// Puts the time into the place that was kept for it.
void stamp(std::string& bytes, std::size_t from) {
    const auto place = bytes.find(k_unstamped, from);
    if (place == std::string::npos) return;
    const auto now = Duration(Clock::now().time_since_epoch()).count();
    std::array<char, k_stamp_digits> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), now).ptr;
    const auto length = static_cast<std::size_t>(end - digits.data());
    bytes.replace(place + k_unstamped.size() - length, length, digits.data(), length);
}

}  // namespace

void reset(tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.set_option(net::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
}

void close_politely(tcp::socket& socket) {
    boost::system::error_code ignored;
    socket.shutdown(tcp::socket::shutdown_both, ignored);
    socket.close(ignored);
}

net::awaitable<bool> Wire::head(std::string_view bytes, Framing framing, Last last) {
    framing_ = framing;
    co_return co_await write(bytes, last);
}

net::awaitable<bool> Wire::body(std::string_view payload) {
    if (strikes_at_byte() && body_bytes_ + payload.size() > fault_.at) co_return co_await strike(payload);
    if (payload.empty()) co_return true;
    buffer_.clear();
    if (framing_ == Framing::chunked) append_chunk_line(buffer_, payload.size());
    const std::size_t start = buffer_.size();
    buffer_ += payload;
    if (stamps_ == Stamps::yes) stamp(buffer_, start);
    count(std::string_view(buffer_).substr(start));
    if (framing_ == Framing::chunked) buffer_ += "\r\n";
    co_return co_await write(buffer_, framing_ == Framing::length ? Last::yes : Last::no);
}

net::awaitable<bool> Wire::end(std::string_view trailers) {
    if (strikes_at_byte()) co_return co_await strike({});
    if (fault_.is(Fault::Kind::no_final_chunk)) {
        struck_ = true;
        over_();
        close_politely(socket_);
        co_return false;
    }
    if (framing_ != Framing::chunked) co_return true;
    const TimePoint last_event = stamped_;
    buffer_.assign("0\r\n").append(trailers).append("\r\n");
    const bool written = co_await write(buffer_, Last::yes);
    stamped_ = last_event;
    co_return written;
}

net::awaitable<void> Wire::break_chunk() {
    struck_ = true;
    co_await write("zz\r\nthis is no chunk\r\n", Last::yes);
    close_politely(socket_);
}

bool Wire::strikes_at_byte() const {
    return fault_.is(Fault::Kind::reset) || fault_.is(Fault::Kind::cut) || fault_.is(Fault::Kind::stall);
}

// Writes what is left up to byte `at`, in a chunk that announces more, then does the deed.
net::awaitable<bool> Wire::strike(std::string_view payload) {
    struck_ = true;
    const std::string_view given = payload.substr(0, fault_.at - body_bytes_);
    buffer_.clear();
    if (framing_ == Framing::chunked) append_chunk_line(buffer_, payload.size() + 1);
    buffer_ += given;
    count(given);
    const bool written = co_await write(buffer_);
    if (!written) co_return false;
    if (!fault_.is(Fault::Kind::stall)) over_();
    if (fault_.is(Fault::Kind::reset)) reset(socket_);
    if (fault_.is(Fault::Kind::cut)) close_politely(socket_);
    while (fault_.is(Fault::Kind::stall) && !sleeper_.cancelled())
        co_await sleeper_.until(TimePoint::max());
    co_return false;
}

void Wire::count(std::string_view payload) {
    body_bytes_ += payload.size();
    body_fnv_ = fnv1a(payload, body_fnv_);
}

net::awaitable<bool> Wire::write(std::string_view bytes, Last last) {
    const std::size_t piece_size = split_.bytes == 0 ? bytes.size() : split_.bytes;
    bool first = true;
    while (!bytes.empty()) {
        if (!first && split_.pause.count() > 0) co_await sleeper_.until(Clock::now() + split_.pause);
        if (sleeper_.cancelled()) co_return false;
        const net::const_buffer piece(bytes.data(), std::min(piece_size, bytes.size()));
        if (first) stamped_ = Clock::now();
        first = false;
        if (last == Last::yes && piece.size() == bytes.size()) over_();
        const auto [error, written] = co_await net::async_write(socket_, piece, tuple_awaitable);
        if (error) co_return false;
        bytes.remove_prefix(written);
    }
    co_return true;
}

}  // namespace sim
