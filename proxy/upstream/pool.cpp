#include "proxy/upstream/pool.hpp"

#include <algorithm>
#include <utility>

namespace noren::proxy::upstream {

Lease::Lease(Pool& pool, net::Socket socket, bool reused, std::uint64_t rules)
    : pool_(&pool), socket_(std::move(socket)), reused_(reused), rules_(rules) {
    pool_->active_.fetch_add(1, std::memory_order_relaxed);
}

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      socket_(std::move(other.socket_)),
      reused_(other.reused_),
      rules_(other.rules_) {}

Lease::~Lease() {
    if (pool_) pool_->active_.fetch_sub(1, std::memory_order_relaxed);
}

void Lease::give_back() {
    Pool* pool = std::exchange(pool_, nullptr);
    pool->active_.fetch_sub(1, std::memory_order_relaxed);
    pool->keep(std::move(socket_), rules_);
}

Pool::Pool(net::Loop& loop, Duration idle_timeout)
    : timer_(loop, [this] { reap(); }), idle_timeout_(idle_timeout) {}

std::optional<Lease> Pool::take(bool can_retry) {
    const TimePoint oldest = Clock::now() - idle_timeout_;
    while (!idle_.empty()) {
        Idle candidate = std::move(idle_.back());
        idle_.pop_back();
        // An idle connection has nothing to say: bytes on it belong to no request, an end is the engine's
        // keep-alive timer.
        const bool sound = candidate.since > oldest && !candidate.socket.disturbed(!can_retry);
        if (!sound) continue;
        publish();
        return std::optional<Lease>(std::in_place, *this, std::move(candidate.socket), true, rules_);
    }
    publish();
    return std::nullopt;
}

void Pool::keep(net::Socket socket, std::uint64_t rules) {
    if (idle_timeout_ <= Duration::zero() || rules != rules_) return;
    socket.wake_nobody();
    idle_.push_back({std::move(socket), Clock::now()});
    publish();
    if (!reaping_) reap_later();
}

void Pool::set_idle_timeout(Duration timeout) {
    idle_timeout_ = timeout;
    reap();
}

void Pool::reap_later() {
    reaping_ = true;
    timer_.set(idle_.front().since + idle_timeout_);
}

void Pool::reap() {
    const TimePoint oldest = Clock::now() - idle_timeout_;
    const auto fresh =
        std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) { return idle.since > oldest; });
    idle_.erase(idle_.begin(), fresh);
    publish();
    reaping_ = false;
    if (!idle_.empty()) reap_later();
}

void Pool::close_idle() {
    idle_.clear();
    publish();
}

void Pool::change_rules() {
    ++rules_;
    close_idle();
}

void Pool::publish() {
    idle_count_.store(idle_.size(), std::memory_order_relaxed);
}

}  // namespace noren::proxy::upstream
