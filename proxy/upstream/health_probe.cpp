#include "proxy/upstream/health_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

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
constexpr int k_slow_probes_allowed = 2;

struct Finding {
    bool up = false;
    bool slow = false;  ///< nothing came in time
    std::string why;    ///< not up
};

Finding slow() {
    return {false, true, "no answer within upstream.health_timeout"};
}

Finding failed(std::string why) {
    return {false, false, std::move(why)};
}

std::string request_for(const config::Endpoint& engine, const std::string& path) {
    const std::string host = engine.is_unix() ? "localhost" : config::to_string(engine);
    return "GET " + path + " HTTP/1.1\r\nHost: " + host +
           "\r\nUser-Agent: noren-health\r\nAccept: */*\r\nConnection: close\r\n\r\n";
}

/// The status line is all that counts.
Finding judge_answer(std::string_view head) {
    const std::string line = std::string(head.substr(0, head.find("\r\n"))) + "\r\n\r\n";
    const auto parsed = http::parse_response_head(line);
    const auto* answer = std::get_if<http::ResponseHead>(&parsed);
    if (!answer) return failed("its answer is not HTTP");
    if (answer->status >= 500) return failed("it answered " + std::to_string(answer->status));
    return {true, false, {}};
}

}  // namespace

struct HealthProbe::State {
    State(asio::io_context& context, const config::Endpoint& e, const config::Upstream& s,
          std::atomic<bool>& u, OnChange changed)
        : io(context),
          engine(e),
          settings(s),
          up(u),
          on_change(std::move(changed)),
          pause(context),
          wakeup(context) {}

    bool probing() const { return settings.health_interval.count() > 0; }
    asio::awaitable<Finding> connect(std::optional<net::Socket>& socket, TimePoint deadline);
    asio::awaitable<Finding> ask(net::Socket& socket, TimePoint deadline);
    asio::awaitable<Finding> probe();
    void take_in(const Finding& finding);
    std::chrono::milliseconds pause_after(const Finding& finding) const;

    asio::io_context& io;
    const config::Endpoint engine;
    config::Upstream settings;
    std::atomic<bool>& up;
    const OnChange on_change;
    asio::steady_timer pause;
    net::Wakeup wakeup;
    std::string last_error;
    int slow_in_a_row = 0;
    bool first = true;
    bool stopping = false;
};

/// "up" here: connected.
asio::awaitable<Finding> HealthProbe::State::connect(std::optional<net::Socket>& socket, TimePoint deadline) {
    Dial dial(io, engine, wakeup.waker());
    std::optional<int> outcome;
    while (!(outcome = dial.poll())) {
        if (stopping || Clock::now() >= deadline) co_return slow();
        co_await wakeup.wait(deadline);
    }
    if (*outcome != 0) co_return failed("cannot connect: " + std::generic_category().message(*outcome));
    socket.emplace(dial.take());
    co_return Finding{true, false, {}};
}

asio::awaitable<Finding> HealthProbe::State::ask(net::Socket& socket, TimePoint deadline) {
    socket.wake(wakeup.waker());
    net::Outbox out(socket);
    out.send(request_for(engine, settings.health_path));
    std::array<char, 4096> buffer;
    std::string head;
    while (head.find("\r\n") == std::string::npos && head.size() < buffer.size()) {
        if (stopping || Clock::now() >= deadline) co_return slow();
        const bool sound = out.flush();
        const net::IoResult read = socket.read(buffer);
        head.append(buffer.data(), read.bytes);
        if (read.status == net::IoStatus::closed || read.status == net::IoStatus::broken || !sound)
            co_return failed("it closed the connection without an answer");
        if (read.status == net::IoStatus::would_block) co_await wakeup.wait(deadline);
    }
    co_return judge_answer(head);
}

asio::awaitable<Finding> HealthProbe::State::probe() {
    const TimePoint deadline = Clock::now() + settings.health_timeout;
    std::optional<net::Socket> socket;
    Finding finding = co_await connect(socket, deadline);
    if (finding.up) finding = co_await ask(*socket, deadline);
    co_return finding;
}

void HealthProbe::State::take_in(const Finding& finding) {
    slow_in_a_row = finding.slow ? slow_in_a_row + 1 : 0;
    last_error = finding.why;
    const bool was_up = up.load();
    const bool only_slow = finding.slow && was_up && slow_in_a_row <= k_slow_probes_allowed;
    const bool is_up = finding.up || only_slow;
    up.store(is_up);
    if ((std::exchange(first, false) || is_up != was_up) && on_change) on_change(is_up, last_error);
}

std::chrono::milliseconds HealthProbe::State::pause_after(const Finding& finding) const {
    if (!probing()) return k_no_probing_look;
    return finding.up ? settings.health_interval : std::min(settings.health_interval, k_interval_while_down);
}

namespace {

template <typename State>
asio::awaitable<void> keep_probing(std::shared_ptr<State> state) {
    while (!state->stopping) {
        Finding finding{true, false, {}};
        if (state->probing()) finding = co_await state->probe();
        if (state->stopping) co_return;
        state->take_in(finding);
        state->pause.expires_after(state->pause_after(finding));
        boost::system::error_code error;
        co_await state->pause.async_wait(asio::redirect_error(asio::use_awaitable, error));
    }
}

bool same_probing(const config::Upstream& a, const config::Upstream& b) {
    return a.health_path == b.health_path && a.health_interval == b.health_interval &&
           a.health_timeout == b.health_timeout;
}

}  // namespace

HealthProbe::HealthProbe(asio::io_context& io, const config::Endpoint& engine,
                         const config::Upstream& settings, std::atomic<bool>& up, OnChange on_change)
    : state_(std::make_shared<State>(io, engine, settings, up, std::move(on_change))) {}

HealthProbe::~HealthProbe() {
    stop();
}

void HealthProbe::start() {
    auto probing = keep_probing(state_);
    asio::co_spawn(state_->io, std::move(probing), asio::detached);
}

void HealthProbe::stop() {
    if (std::exchange(state_->stopping, true)) return;
    state_->pause.cancel();
    state_->wakeup.waker().notify();
}

void HealthProbe::set(const config::Upstream& settings) {
    const bool same = same_probing(state_->settings, settings);
    state_->settings = settings;
    if (!same) state_->pause.cancel();
}

const std::string& HealthProbe::last_error() const {
    return state_->last_error;
}

}  // namespace noren::proxy::upstream
