#include "proxy/upstream/health_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "proxy/http/head.hpp"
#include "proxy/net/outbox.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/upstream/dial.hpp"

namespace noren::proxy::upstream {
namespace {

using metrics::Clock;
using metrics::TimePoint;

// A starting engine is looked at more often than a running one, so that a pod is ready soon after it is.
constexpr std::chrono::milliseconds k_interval_while_down{1000};
// Without probing: how soon a reload that turns it on is noticed.
constexpr std::chrono::milliseconds k_no_probing_look{1000};

std::string request_for(const config::Endpoint& engine, const std::string& path) {
    const std::string host = engine.is_unix() ? "localhost" : config::to_string(engine);
    return "GET " + path + " HTTP/1.1\r\nHost: " + host +
           "\r\nUser-Agent: noren-health\r\nAccept: */*\r\nConnection: close\r\n\r\n";
}

}  // namespace

struct HealthProbe::State {
    State(asio::io_context& context, const config::Endpoint& e, const config::Upstream& s,
          std::atomic<bool>& u)
        : io(context), engine(e), settings(s), up(u), pause(context), wakeup(context) {}

    asio::awaitable<bool> connect(std::optional<net::Socket>& socket, TimePoint deadline);
    asio::awaitable<bool> probe();

    asio::io_context& io;
    const config::Endpoint engine;
    config::Upstream settings;
    std::atomic<bool>& up;
    asio::steady_timer pause;
    net::Wakeup wakeup;
    bool stopping = false;
};

asio::awaitable<bool> HealthProbe::State::connect(std::optional<net::Socket>& socket, TimePoint deadline) {
    Dial dial(io, engine, wakeup.waker());
    std::optional<int> outcome;
    while (!(outcome = dial.poll())) {
        if (stopping || Clock::now() >= deadline) co_return false;
        co_await wakeup.wait(deadline);
    }
    if (*outcome == 0) socket.emplace(dial.take());
    co_return *outcome == 0;
}

asio::awaitable<bool> HealthProbe::State::probe() {
    const TimePoint deadline = Clock::now() + settings.health_timeout;
    std::optional<net::Socket> socket;
    if (!co_await connect(socket, deadline)) co_return false;
    socket->wake(wakeup.waker());
    net::Outbox out(*socket);
    out.send(request_for(engine, settings.health_path));
    std::array<char, 4096> buffer;
    std::string head;
    // The status line is all that counts.
    while (head.find("\r\n") == std::string::npos && head.size() < buffer.size()) {
        if (stopping || Clock::now() >= deadline || !out.flush()) co_return false;
        const net::IoResult read = socket->read(buffer);
        if (read.status == net::IoStatus::would_block) {
            co_await wakeup.wait(deadline);
            continue;
        }
        if (read.status != net::IoStatus::ok) co_return false;
        head.append(buffer.data(), read.bytes);
    }
    const auto parsed = http::parse_response_head(head.substr(0, head.find("\r\n")) + "\r\n\r\n");
    const auto* answer = std::get_if<http::ResponseHead>(&parsed);
    co_return answer != nullptr && answer->status < 500;
}

namespace {

template <typename State>
asio::awaitable<void> keep_probing(std::shared_ptr<State> state) {
    while (!state->stopping) {
        const bool probing = state->settings.health_interval.count() > 0;
        bool up = true;
        if (probing) up = co_await state->probe();
        if (state->stopping) co_return;
        state->up.store(up);
        const std::chrono::milliseconds interval =
            probing ? state->settings.health_interval : k_no_probing_look;
        state->pause.expires_after(up ? interval : std::min(interval, k_interval_while_down));
        boost::system::error_code error;
        co_await state->pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
}

}  // namespace

HealthProbe::HealthProbe(asio::io_context& io, const config::Endpoint& engine,
                         const config::Upstream& settings, std::atomic<bool>& up)
    : state_(std::make_shared<State>(io, engine, settings, up)) {}

HealthProbe::~HealthProbe() {
    stop();
}

void HealthProbe::start() {
    auto probing = keep_probing(state_);
    asio::co_spawn(state_->io, std::move(probing), asio::detached);
}

void HealthProbe::stop() {
    state_->stopping = true;
    state_->pause.cancel();
    state_->wakeup.waker().notify();
}

void HealthProbe::set(const config::Upstream& settings) {
    state_->settings = settings;
}

}  // namespace noren::proxy::upstream
