#include "proxy/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "metrics/telemetry.hpp"
#include "proxy/exchange.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"
#include "proxy/net/patience.hpp"
#include "proxy/worker.hpp"

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;
using net::IoStatus;

namespace {

// How long, and for how many bytes, the last answer is given time to arrive before the socket is closed under
// a client that is still sending: closing with unread bytes resets the connection and may destroy the answer.
constexpr std::chrono::seconds k_linger{2};
constexpr std::size_t k_linger_bytes = 16 * 1024 * 1024;

// Of those that a client has sent ahead; then it is the turn of the worker's other connections.
constexpr int k_requests_per_turn = 8;

Failure from_head_error(const http::HeadError& error) {
    return make_failure(Reason::bad_request, error.detail, error.status);
}

}  // namespace

Downstream::Received Downstream::receive(std::span<char> scratch) {
    if (!in.empty()) return {IoStatus::ok, in};
    const net::IoResult read = socket.read(scratch);
    if (read.status == IoStatus::would_block) return {};
    return {read.status, {scratch.data(), read.bytes}};
}

void Downstream::used(std::string_view received, std::size_t size) {
    if (received.data() == in.data()) {
        take_in(size);
    } else {
        in.assign(received.substr(size));
    }
}

Connection::Connection(Worker& worker, net::Descriptor client, admission::ConnectionQuota::Place place)
    : worker_(worker), place_(std::move(place)), down_(worker.loop(), std::move(client)) {
    if (const auto& tls = worker_.settings()->tls.downstream) down_.socket.start_tls(*tls);
    worker_.joined(*this);
}

Connection::~Connection() {
    worker_.left(*this);
}

net::Task<> Connection::serve() {
    if (down_.socket.is_tls()) {
        const bool secure = co_await shake_hands();
        if (!secure) co_return;
    }
    int in_a_row = 0;  // of requests that had been sent ahead
    for (bool first = true;; first = false) {
        HeadText head = co_await read_head(first);
        if (std::holds_alternative<Closed>(head)) co_return;
        bool reusable = false;
        if (const Failure* failure = std::get_if<Failure>(&head)) {
            refuse(*failure, down_.in);
        } else {
            std::string text = std::get<std::string>(std::move(head));
            reusable = co_await serve_one(std::move(text));
        }
        if (!down_.socket.is_open()) co_return;
        if (!reusable) {
            co_await linger();
            co_return;
        }
        if (!down_.out.flush()) co_return;
        if (!down_.out.empty()) {
            const bool taken = co_await send_rest();
            if (!taken) co_return;
        }
        in_a_row = down_.in.empty() ? 0 : in_a_row + 1;
        if (in_a_row == k_requests_per_turn) {
            in_a_row = 0;
            down_.wakeup.waker().post();
            co_await down_.wakeup.wait(net::k_never);
        }
    }
}

/// A client that sends request after request and reads no answer is not asked for the next. False: it takes
/// nothing any more.
net::Task<bool> Connection::send_rest() {
    TimePoint took = Clock::now();
    std::uint64_t written = down_.out.written();
    for (net::Patience patience;;) {
        if (!down_.out.flush()) co_return false;
        if (down_.out.empty()) co_return true;
        if (worker_.stopping() == Stop::now) co_return false;
        const TimePoint now = Clock::now();
        if (written != std::exchange(written, down_.out.written())) {
            took = now;
            patience.renew();
        }
        const auto settings = worker_.settings();
        const TimePoint deadline = net::deadline_after(took, settings->config.downstream.stall_timeout);
        const net::Patience::Left left = patience.left(deadline, now);
        if (left == net::Patience::Left::none) co_return false;
        if (left == net::Patience::Left::look) {
            down_.socket.try_anyway();
            continue;
        }
        co_await down_.wakeup.wait(deadline);
    }
}

/// False: there is nobody to serve.
net::Task<bool> Connection::shake_hands() {
    metrics::Telemetry& telemetry = worker_.services().telemetry;
    const TimePoint deadline = Clock::now() + worker_.settings()->config.timeouts.head;
    for (;;) {
        const net::Socket::Handshake state = down_.socket.handshake();
        if (state == net::Socket::Handshake::done) break;
        if (state == net::Socket::Handshake::failed) {
            const net::TlsFault fault = down_.socket.tls_failure().fault;
            telemetry.tls_handshake(word_of(fault));
            down_.socket.end_tls();
            if (fault == net::TlsFault::plain_text)
                refuse(make_failure(Reason::bad_request,
                                    "this port speaks HTTPS, and the request was plain HTTP"));
            co_await linger();  // or the alert that says why may be lost, as an answer may
            co_return false;
        }
        if (worker_.stopping() == Stop::now) co_return false;
        if (Clock::now() >= deadline) {
            telemetry.tls_handshake("timeout");
            co_return false;
        }
        co_await down_.wakeup.wait(deadline);
    }
    telemetry.tls_handshake(word_of(net::TlsFault::none));
    co_return true;
}

net::Task<Connection::HeadText> Connection::read_head(bool first) {
    const auto settings = worker_.settings();
    const auto& limits = settings->config.downstream;
    const auto& timeouts = settings->config.timeouts;
    http::HeadScanner scanner({limits.max_head, limits.max_fields});
    TimePoint began = down_.in.empty() ? net::k_never : Clock::now();  // of the head's first byte
    const TimePoint idle_since = Clock::now();
    net::Patience patience;
    for (bool skipped_line = false;;) {
        if (!skipped_line && down_.in.size() >= 2) {
            down_.in.erase(0, http::leading_empty_line(down_.in));
            skipped_line = true;
        }
        const auto found = scanner.scan(down_.in);
        if (const auto* error = std::get_if<http::HeadError>(&found)) co_return from_head_error(*error);
        if (const auto* size = std::get_if<std::size_t>(&found)) {
            std::string text = down_.in.substr(0, *size);
            down_.take_in(*size);
            co_return text;
        }
        const net::IoResult read = down_.socket.read(worker_.scratch());
        if (read.status == IoStatus::ok) {
            if (began == net::k_never) began = Clock::now();
            patience.renew();
            down_.in.append(worker_.scratch().data(), read.bytes);
            continue;
        }
        if (read.status != IoStatus::would_block) co_return Closed{};
        const bool idle = began == net::k_never;
        // Who has just connected gets an answer, if only a refusal; who was kept alive knows of closing.
        if (idle && !first && worker_.stopping() >= Stop::refuse) co_return Closed{};
        if (worker_.stopping() == Stop::now) co_return Closed{};
        const auto allowed = idle && !first ? timeouts.keep_alive : timeouts.head;
        const TimePoint deadline =
            allowed.count() == 0 ? net::k_never : (idle ? idle_since : began) + allowed;
        const net::Patience::Left left = patience.left(deadline, Clock::now());
        if (left == net::Patience::Left::look) {
            down_.socket.try_anyway();
            continue;
        }
        if (left == net::Patience::Left::none) {
            if (idle) co_return Closed{};
            co_return make_failure(Reason::head_timeout, "the request head did not arrive in time");
        }
        down_.out.flush();
        co_await down_.wakeup.wait(deadline);
    }
}

/// text: a whole head, kept here for as long as the exchange views it.
net::Task<bool> Connection::serve_one(std::string text) {
    auto parsed = http::parse_request_head(text);
    if (const auto* error = std::get_if<http::HeadError>(&parsed)) {
        refuse(from_head_error(*error), text);
        co_return false;
    }
    auto& head = std::get<http::RequestHead>(parsed);
    const auto framing = http::request_framing(head);
    if (const auto* error = std::get_if<http::HeadError>(&framing)) {
        refuse(from_head_error(*error), text);
        co_return false;
    }
    Exchange exchange(worker_, down_, head, std::get<http::Framing>(framing), Clock::now());
    co_return co_await exchange.run();
}

/// Before there is an exchange: nobody knows what API was meant, so the answer speaks the most common
/// dialect. head: as far as it has come; an answer to HEAD has no body, whatever was wrong with it.
void Connection::refuse(const Failure& failure, std::string_view head) {
    const std::string answer =
        to_response(failure, Dialect::openai, {worker_.date(), {}, false, 1, !head.starts_with("HEAD ")});
    worker_.services().telemetry.refused_head(failure.status, outcome_of(failure.reason),
                                              word_of(failure.reason), body_size(answer));
    down_.out.send(answer);
}

/// RFC 9112 9.6: say that nothing more comes, then read on for a while before closing.
net::Task<> Connection::linger() {
    const TimePoint deadline = Clock::now() + k_linger;
    std::size_t drained = 0;
    bool said = false;
    while (Clock::now() < deadline && drained < k_linger_bytes && worker_.stopping() != Stop::now) {
        if (!down_.out.flush()) co_return;
        if (!said && down_.out.empty()) {
            down_.socket.shutdown_write();
            said = true;
        }
        const net::IoResult read = down_.socket.read(worker_.scratch());
        if (read.status == IoStatus::closed || read.status == IoStatus::broken) co_return;
        drained += read.bytes;
        if (read.status == IoStatus::would_block) co_await down_.wakeup.wait(deadline);
    }
}

}  // namespace noren::proxy
