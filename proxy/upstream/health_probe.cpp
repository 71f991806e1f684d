#include "proxy/upstream/health_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "proxy/http/head.hpp"
#include "proxy/net/outbox.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/task.hpp"
#include "proxy/net/wakeup.hpp"
#include "proxy/upstream/dial.hpp"

namespace noren::proxy::upstream {
namespace {

using metrics::Clock;
using metrics::TimePoint;

// A starting engine is looked at more often than a running one, so that a pod is ready soon after it is.
constexpr std::chrono::milliseconds k_interval_while_down{1000};
// Between two looks, however often dials find nobody there.
constexpr std::chrono::milliseconds k_between_looks{250};
constexpr int k_slow_probes_allowed = 2;

struct Finding {
    bool up = false;
    bool slow = false;  ///< nothing came in time
    std::string why;    ///< not up
    bool ours = false;  ///< noren could not look: the engine is as it was
};

bool same_probing(const config::Upstream& a, const config::Upstream& b) {
    return a.health_path == b.health_path && a.health_interval == b.health_interval &&
           a.health_timeout == b.health_timeout;
}

Finding slow() {
    return {false, true, "no answer within upstream.health_timeout", false};
}

Finding failed(std::string why) {
    return {false, false, std::move(why), false};
}

std::string request_for(const config::Address& engine, const std::string& path) {
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
    return {true, false, {}, false};
}

}  // namespace

struct HealthProbe::State {
    State(net::Loop& l, Resolver& r, const config::Address& e, const config::Upstream& s, Tls t,
          EngineHealth& h, OnChange changed)
        : loop(l),
          resolver(r),
          engine(e),
          settings(s),
          tls(std::move(t)),
          health(h),
          on_change(std::move(changed)),
          wakeup(l) {
        health.wake_on_doubt(wakeup.waker());
    }

    bool probing() const { return settings.health_interval.count() > 0; }
    Finding judge(const Dialled& end) const;
    net::Task<Finding> ask(net::Socket& socket, TimePoint deadline);
    net::Task<Finding> probe();
    net::Task<> keep_probing();
    net::Task<> pause(TimePoint until);
    void take_in(const Finding& finding);
    TimePoint next_after(const Finding& finding) const;
    TimePoint next_look(TimePoint planned) const;

    net::Loop& loop;
    Resolver& resolver;
    const config::Address engine;
    config::Upstream settings;
    Tls tls;
    EngineHealth& health;
    const OnChange on_change;
    net::Wakeup wakeup;
    TimePoint looked_at;  ///< when the last probe began
    int slow_in_a_row = 0;
    bool first = true;
    bool settings_changed = false;
    mutable std::mutex error_mutex;
    std::string last_error;
    std::optional<net::Task<>> task;
};

/// Of a dial that ended without a connection.
Finding HealthProbe::State::judge(const Dialled& end) const {
    if (end.late) return slow();
    if (end.tls.fault != net::TlsFault::none) return failed(std::string(end.tls.text));
    if (end.unresolved) return failed("cannot resolve the host name " + engine.host);
    Finding finding = failed("cannot connect: " + std::generic_category().message(end.error));
    finding.ours = is_shortage(end.error);
    return finding;
}

net::Task<Finding> HealthProbe::State::ask(net::Socket& socket, TimePoint deadline) {
    socket.wake(wakeup.waker());
    net::Outbox out(socket);
    out.send(request_for(engine, settings.health_path));
    std::array<char, 4096> buffer;
    std::string head;
    while (head.find("\r\n") == std::string::npos && head.size() < buffer.size()) {
        if (Clock::now() >= deadline) co_return slow();
        const bool sound = out.flush();
        const net::IoResult read = socket.read(buffer);
        head.append(buffer.data(), read.bytes);
        if (const auto failure = socket.tls_failure(); failure.fault != net::TlsFault::none)
            co_return failed(std::string(failure.text));
        if (read.status == net::IoStatus::closed || read.status == net::IoStatus::broken || !sound)
            co_return failed("it closed the connection without an answer");
        if (read.status == net::IoStatus::would_block) co_await wakeup.wait(deadline);
    }
    co_return judge_answer(head);
}

net::Task<Finding> HealthProbe::State::probe() {
    looked_at = Clock::now();
    health.begin_look();
    const TimePoint deadline = looked_at + settings.health_timeout;
    Dialled end = co_await dial(loop, resolver, engine, tls, wakeup, deadline);
    if (!end.socket) co_return judge(end);
    Finding finding = co_await ask(*end.socket, deadline);
    co_return finding;
}

void HealthProbe::State::take_in(const Finding& finding) {
    if (!finding.ours) slow_in_a_row = finding.slow ? slow_in_a_row + 1 : 0;
    {
        const std::lock_guard lock(error_mutex);
        last_error = finding.why;
    }
    const bool was_up = health.up();
    const bool only_slow = finding.slow && was_up && slow_in_a_row <= k_slow_probes_allowed;
    const bool is_up = finding.up || only_slow || (finding.ours && was_up);
    health.set_up(is_up);
    if ((std::exchange(first, false) || is_up != was_up) && on_change) on_change(is_up, finding.why);
}

TimePoint HealthProbe::State::next_after(const Finding& finding) const {
    if (!probing()) return net::k_never;
    return Clock::now() + (finding.up ? settings.health_interval
                                      : std::min(settings.health_interval, k_interval_while_down));
}

TimePoint HealthProbe::State::next_look(TimePoint planned) const {
    return probing() && health.doubted() ? std::min(planned, looked_at + k_between_looks) : planned;
}

/// Until it is time, a dial has found nobody there, or a reload wants something else.
net::Task<> HealthProbe::State::pause(TimePoint until) {
    settings_changed = false;
    for (;;) {
        const TimePoint due = next_look(until);
        if (settings_changed || Clock::now() >= due) co_return;
        co_await wakeup.wait(due);
    }
}

net::Task<> HealthProbe::State::keep_probing() {
    for (;;) {
        Finding finding{true, false, {}, false};
        if (probing()) finding = co_await probe();
        take_in(finding);
        const TimePoint next = next_after(finding);
        co_await pause(next);
    }
}

HealthProbe::HealthProbe(net::Loop& loop, Resolver& resolver, const config::Address& engine,
                         const config::Upstream& settings, Tls tls, EngineHealth& health, OnChange on_change)
    : state_(std::make_shared<State>(loop, resolver, engine, settings, std::move(tls), health,
                                     std::move(on_change))) {}

HealthProbe::~HealthProbe() {
    state_->task.reset();
    state_->health.wake_on_doubt(std::nullopt);
}

void HealthProbe::start() {
    state_->loop.post([state = state_] {
        state->task.emplace(state->keep_probing());
        state->task->start();
    });
}

void HealthProbe::set(const config::Upstream& settings, Tls tls) {
    state_->loop.post([state = state_, settings, tls = std::move(tls)] {
        if (same_probing(state->settings, settings) && state->tls == tls) return;
        state->settings = settings;
        state->tls = tls;
        state->settings_changed = true;
        state->wakeup.waker().notify();
    });
}

std::string HealthProbe::last_error() const {
    const std::lock_guard lock(state_->error_mutex);
    return state_->last_error;
}

}  // namespace noren::proxy::upstream
