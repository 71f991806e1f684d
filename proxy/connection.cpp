#include "proxy/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "metrics/telemetry.hpp"
#include "proxy/exchange.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"
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

Failure from_head_error(const http::HeadError& error) {
    return make_failure(Reason::bad_request, error.detail, error.status);
}

}  // namespace

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
    for (bool first = true;; first = false) {
        HeadText head = co_await read_head(first);
        if (std::holds_alternative<Closed>(head)) co_return;
        bool reusable = false;
        if (const Failure* failure = std::get_if<Failure>(&head)) {
            refuse(*failure);
        } else {
            std::string text = std::get<std::string>(std::move(head));
            reusable = co_await serve_one(std::move(text));
        }
        if (!down_.socket.is_open()) co_return;
        if (!reusable) {
            co_await linger();
            co_return;
        }
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
    for (bool skipped_line = false;;) {
        if (!skipped_line && down_.in.size() >= 2) {
            down_.in.erase(0, http::leading_empty_line(down_.in));
            skipped_line = true;
        }
        const auto found = scanner.scan(down_.in);
        if (const auto* error = std::get_if<http::HeadError>(&found)) co_return from_head_error(*error);
        if (const auto* size = std::get_if<std::size_t>(&found)) {
            std::string text = down_.in.substr(0, *size);
            down_.in.erase(0, *size);
            co_return text;
        }
        const net::IoResult read = down_.socket.read(worker_.scratch());
        if (read.status == IoStatus::ok) {
            if (began == net::k_never) began = Clock::now();
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
        if (Clock::now() >= deadline) {
            if (idle) co_return Closed{};
            co_return make_failure(Reason::head_timeout, "the request head did not arrive in time");
        }
        down_.out.flush();
        co_await down_.wakeup.wait(deadline);
    }
}

/// text: a whole head, kept here for as long as the exchange views it.
net::Task<bool> Connection::serve_one(std::string text) {
    const auto parsed = http::parse_request_head(text);
    if (const auto* error = std::get_if<http::HeadError>(&parsed)) {
        refuse(from_head_error(*error));
        co_return false;
    }
    const auto& head = std::get<http::RequestHead>(parsed);
    const auto framing = http::request_framing(head);
    if (const auto* error = std::get_if<http::HeadError>(&framing)) {
        refuse(from_head_error(*error));
        co_return false;
    }
    Exchange exchange(worker_, down_, head, std::get<http::Framing>(framing), Clock::now());
    co_return co_await exchange.run();
}

/// Before there is an exchange: nobody knows what API was meant, so the answer speaks the most common
/// dialect.
void Connection::refuse(const Failure& failure) {
    worker_.services().telemetry.refused_head(failure.status, outcome_of(failure.reason),
                                              word_of(failure.reason));
    down_.out.send(to_response(failure, Dialect::openai, {worker_.date(), {}, false}));
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
