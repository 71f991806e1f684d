#include "proxy/net/wakeup.hpp"

#include <atomic>
#include <utility>

namespace noren::proxy::net {

struct Waker::State final : Posting, Notifiable, std::enable_shared_from_this<Waker::State> {
    explicit State(Loop& l) : loop(l), timer(l, [this] { timer_fired(); }) {}

    void post() noexcept override {
        if (posted.exchange(true)) return;
        until_run = shared_from_this();
        loop.post(*this);
    }
    void run() override {
        const auto self = std::exchange(until_run, nullptr);
        posted.store(false);
        if (!over) notify();
    }
    void drop() noexcept override { const auto self = std::exchange(until_run, nullptr); }

    void notify() {
        notified = true;
        resume();
    }

    /// The last touch: the sleeper may end, and take this with it.
    void resume() {
        if (sleeper) std::exchange(sleeper, nullptr).resume();
    }

    /// A deadline that only moves away, as it does with every token, costs a store: the timer is left to fire
    /// at the old time and is set anew then. Only an earlier deadline touches the timer at once.
    void arm() {
        if (armed <= deadline || deadline == k_never) return;
        armed = deadline;
        timer.set(deadline);
    }

    void timer_fired() {
        armed = k_never;
        if (sleeper && Clock::now() >= deadline) {
            resume();
        } else {
            arm();
        }
    }

    Loop& loop;
    Timer timer;
    TimePoint deadline = k_never;  ///< of the present wait
    TimePoint armed = k_never;     ///< when the timer fires, at the latest; k_never: not set
    bool notified = false;
    bool over = false;  ///< the sleeper's side is gone
    std::atomic<bool> posted{false};
    std::shared_ptr<State> until_run;  ///< itself, while it is posted
    std::coroutine_handle<> sleeper;
};

void Waker::notify() const {
    state_->notify();
}

void Waker::post() const noexcept {
    state_->post();
}

std::shared_ptr<Notifiable> Waker::notifiable() const {
    return state_;
}

Wakeup::Wakeup(Loop& loop) : waker_(std::make_shared<Waker::State>(loop)) {}

Wakeup::~Wakeup() {
    waker_.state_->timer.cancel();
    waker_.state_->over = true;
}

Wakeup::Sleep Wakeup::wait(TimePoint deadline) {
    return {*waker_.state_, deadline};
}

bool Wakeup::Sleep::await_ready() const noexcept {
    return state_->notified;
}

void Wakeup::Sleep::await_suspend(std::coroutine_handle<> sleeper) const {
    state_->deadline = deadline_;
    state_->arm();
    state_->sleeper = sleeper;
}

void Wakeup::Sleep::await_resume() const noexcept {
    state_->notified = false;
    state_->deadline = k_never;
}

}  // namespace noren::proxy::net
