#include "tests/sim/core.hpp"

#include <algorithm>

#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"

namespace sim {

Core::Core(net::io_context& io, Options options)
    : options_(std::move(options)),
      batch_(io, options_.gpu),
      log_(options_.truth_file, options_.keep_truth),
      metrics_(options_.model) {}

Truth Core::begin(std::string_view id, std::string_view api) {
    Truth truth;
    truth.arrival = Clock::now();
    truth.id = id.empty() ? concat("sim-", next_id_++) : std::string(id);
    truth.api = api;
    truth.request_fnv = truth.answer_fnv = k_fnv_basis;
    ++counts_.requests;
    return truth;
}

void Core::active() {
    if (counts_.active >= counts_.most_active) {
        for (const Peer& peer : peers_)
            peer.look();
    }
    const std::uint64_t now = ++counts_.active;
    counts_.most_active = std::max(counts_.most_active.load(), now);
}

void Core::finish(Truth truth) {
    truth.end = Clock::now();
    ++(truth.outcome == "complete"    ? counts_.complete
       : truth.outcome == "cancelled" ? counts_.cancelled
       : truth.outcome == "faulted"   ? counts_.faulted
       : truth.outcome == "refused"   ? counts_.refused
                                      : counts_.aborted);
    metrics_.record(truth);
    log_.add(truth);
}

std::unique_ptr<TokenFeed> Core::feed(const Ask& ask, const Overrides& overrides, Sleeper& sleeper) {
    if (!lone(overrides)) return batch_.join(ask, sleeper);
    Pace pace = options_.lone.value_or(Pace{});
    if (overrides.ttft) pace.ttft = *overrides.ttft;
    if (overrides.interval) {
        pace.gap = *overrides.interval;
        pace.exponential = false;
    }
    pace.exponential = overrides.exponential.value_or(pace.exponential);
    return std::make_unique<PacedFeed>(ask, pace, options_.seed, sleeper, lone_running_);
}

bool Core::fits(const Ask& ask, const Overrides& overrides) const {
    return lone(overrides) || batch_.fits(ask);
}

bool Core::lone(const Overrides& overrides) const {
    return options_.lone || overrides.ttft || overrides.interval;
}

Fault Core::next_fault() {
    if (script_.empty()) return options_.fault;
    const Fault fault = script_.front();
    script_.pop_front();
    return fault;
}

std::string Core::metrics_page() const {
    const Scheduler& gpu = batch_.scheduler();
    EngineGauges gauges{.running = gpu.running() + lone_running_, .waiting = gpu.waiting()};
    gauges.kv_usage = static_cast<double>(gpu.kv_reserved()) / static_cast<double>(gpu.model().kv_tokens);
    return metrics_.page(gauges);
}

Counters Core::counters() const {
    return {.requests = counts_.requests,
            .complete = counts_.complete,
            .cancelled = counts_.cancelled,
            .faulted = counts_.faulted,
            .refused = counts_.refused,
            .aborted = counts_.aborted,
            .active = counts_.active,
            .most_active = counts_.most_active,
            .connections = counts_.connections,
            .accepted = counts_.accepted};
}

std::list<Core::Peer>::iterator Core::connected(Peer peer) {
    ++counts_.accepted;
    ++counts_.connections;
    return peers_.insert(peers_.end(), std::move(peer));
}

void Core::disconnected(std::list<Peer>::iterator peer) {
    --counts_.connections;
    peers_.erase(peer);
}

void Core::abort_connections() {
    for (const Peer& peer : peers_)
        peer.abort();
}

void Core::stop() {
    stopping_ = true;
    batch_.stop();
    abort_connections();
}

}  // namespace sim
