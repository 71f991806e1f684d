#include "proxy/admission/gate.hpp"

#include <vector>

namespace noren::proxy::admission {

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
    Waiter next;
    {
        const std::lock_guard lock(mutex_);
        set_running(running_ - 1);
        if (head_ != nullptr && has_room()) next = grant_head();  // one place, one waiter
    }
    if (next) next->post();
}

void Gate::set_limits(const GateLimits& limits) {
    std::vector<Waiter> to_tell;
    {
        const std::lock_guard lock(mutex_);
        to_tell.reserve(waiting_);
        limits_ = limits;
        publish_limits();
        while (head_ != nullptr && has_room())
            to_tell.push_back(grant_head());
    }
    for (const Waiter& waiter : to_tell)
        waiter->post();
}

void Gate::close() {
    std::vector<Waiter> to_tell;
    {
        const std::lock_guard lock(mutex_);
        to_tell.reserve(waiting_);
        closed_ = true;
        while (head_ != nullptr)
            to_tell.push_back(decide(*head_, Ticket::State::refused));
    }
    for (const Waiter& waiter : to_tell)
        waiter->post();
}

void Gate::open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
}

GateLimits Gate::limits() const {
    return {cap_seen_.load(std::memory_order_relaxed), queue_seen_.load(std::memory_order_relaxed)};
}

Gate::Waiter Gate::grant_head() {
    set_running(running_ + 1);
    return decide(*head_, Ticket::State::granted);
}

/// The last touch of the ticket is the store: from then on its owner may destroy it.
Gate::Waiter Gate::decide(Ticket& ticket, Ticket::State state) {
    unlink(ticket);
    Waiter waiter = std::move(ticket.waiter_);
    ticket.state_.store(state, std::memory_order_release);
    return waiter;
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
