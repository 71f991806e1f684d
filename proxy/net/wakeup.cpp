#include "proxy/net/wakeup.hpp"

#include <optional>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace noren::proxy::net {

struct Waker::State {
    using Waiter = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;

    explicit State(asio::io_context& context) : io(context), timer(context) {}

    void notify() {
        notified = true;
        resume();
    }

    void resume() {
        if (!waiter) return;
        Waiter handler = std::move(*waiter);
        waiter.reset();
        std::move(handler)();
    }

    /// A deadline that only moves away, as it does with every token, costs a store: the timer is left to fire
    /// at the old time and is set anew then. Only an earlier deadline touches the timer at once.
    static void arm(const std::shared_ptr<State>& self) {
        if (self->armed <= self->deadline || self->deadline == k_never) return;
        self->armed = self->deadline;
        self->timer.expires_at(self->deadline);
        self->timer.async_wait([self](const boost::system::error_code& error) {
            if (error) return;  // set anew, or the connection is gone
            self->armed = k_never;
            if (self->waiter && Clock::now() >= self->deadline) {
                self->resume();
            } else {
                arm(self);
            }
        });
    }

    asio::io_context& io;
    asio::steady_timer timer;
    TimePoint deadline = k_never;  ///< of the present wait
    TimePoint armed = k_never;     ///< when the timer fires, at the latest; k_never: not set
    bool notified = false;
    std::optional<Waiter> waiter;
};

void Waker::notify() const {
    state_->notify();
}

void Waker::post() const {
    asio::post(state_->io, [state = state_] { state->notify(); });
}

Wakeup::Wakeup(asio::io_context& io) : waker_(std::make_shared<Waker::State>(io)) {}

Wakeup::~Wakeup() {
    waker_.state_->timer.cancel();
}

asio::awaitable<void> Wakeup::wait(TimePoint deadline) {
    Waker::State* state = waker_.state_.get();
    state->deadline = deadline;
    if (!std::exchange(state->notified, false)) {
        Waker::State::arm(waker_.state_);
        co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
            [state](auto&& handler) { state->waiter.emplace(std::forward<decltype(handler)>(handler)); },
            asio::use_awaitable);
        state->notified = false;
    }
    state->deadline = k_never;
}

}  // namespace noren::proxy::net
