#include "proxy/admission/gate.hpp"

namespace noren::proxy::admission {
namespace {

void tell(const std::vector<std::function<void()>>& notifications) {
    for (const auto& notify : notifications)
        if (notify) notify();
}

}  // namespace

void Permit::release() noexcept {
    if (Gate* gate = std::exchange(gate_, nullptr)) gate->release();
}

Ticket::~Ticket() {
    if (state() == State::waiting) leave();
    if (state() == State::granted) take();
}

Permit Ticket::take() {
    state_.store(State::taken, std::memory_order_relaxed);
    return Permit(gate_);
}

bool Ticket::leave() {
    return gate_.leave(*this);
}

Gate::Entry Gate::enter(Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    if (closed_) return Entry::draining;
    if (has_room() && head_ == nullptr) {
        set_running(running_ + 1);
        ticket.state_.store(Ticket::State::granted, std::memory_order_release);
        return Entry::admitted;
    }
    if (waiting_ >= limits_.max_queue) return Entry::full;
    link(ticket);
    ticket.state_.store(Ticket::State::waiting, std::memory_order_release);
    return Entry::queued;
}

bool Gate::leave(Ticket& ticket) {
    const std::lock_guard lock(mutex_);
    if (ticket.state() != Ticket::State::waiting) return false;
    unlink(ticket);
    ticket.state_.store(Ticket::State::idle, std::memory_order_release);
    return true;
}

void Gate::release() noexcept {
    Notifications to_tell;
    {
        const std::lock_guard lock(mutex_);
        set_running(running_ - 1);
        grant_waiting(to_tell);
    }
    tell(to_tell);
}

void Gate::set_limits(const GateLimits& limits) {
    Notifications to_tell;
    {
        const std::lock_guard lock(mutex_);
        limits_ = limits;
        publish_limits();
        grant_waiting(to_tell);
    }
    tell(to_tell);
}

void Gate::close() {
    Notifications to_tell;
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        while (head_ != nullptr)
            decide(*head_, Ticket::State::refused, to_tell);
    }
    tell(to_tell);
}

void Gate::open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
}

GateLimits Gate::limits() const {
    return {cap_seen_.load(std::memory_order_relaxed), queue_seen_.load(std::memory_order_relaxed)};
}

void Gate::grant_waiting(Notifications& to_tell) {
    while (head_ != nullptr && has_room()) {
        set_running(running_ + 1);
        decide(*head_, Ticket::State::granted, to_tell);
    }
}

/// The last touch of the ticket is the store: from then on its owner may destroy it.
void Gate::decide(Ticket& ticket, Ticket::State state, Notifications& to_tell) {
    unlink(ticket);
    to_tell.push_back(std::move(ticket.notify_));
    ticket.state_.store(state, std::memory_order_release);
}

void Gate::link(Ticket& ticket) {
    ticket.previous_ = tail_;
    ticket.next_ = nullptr;
    (tail_ ? tail_->next_ : head_) = &ticket;
    tail_ = &ticket;
    waiting_seen_.store(++waiting_, std::memory_order_relaxed);
}

void Gate::unlink(Ticket& ticket) {
    (ticket.previous_ ? ticket.previous_->next_ : head_) = ticket.next_;
    (ticket.next_ ? ticket.next_->previous_ : tail_) = ticket.previous_;
    waiting_seen_.store(--waiting_, std::memory_order_relaxed);
}

void Gate::set_running(std::uint32_t running) {
    running_ = running;
    running_seen_.store(running, std::memory_order_relaxed);
}

void Gate::publish_limits() {
    cap_seen_.store(limits_.max_concurrency, std::memory_order_relaxed);
    queue_seen_.store(limits_.max_queue, std::memory_order_relaxed);
}

}  // namespace noren::proxy::admission
