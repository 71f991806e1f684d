#pragma once
// A coroutine that another one waits for: started by co_await, resumed by whatever it waits for itself, and
// gone with the object that holds it. One thread; nothing but the coroutine's frame is allocated.

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace noren::proxy::net {

template <typename Result>
class Task;

namespace detail {

/// Hands control straight to whoever waits, without growing the stack (symmetric transfer).
struct ToWaiter {
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> done) const noexcept {
        return done.promise().waiter;
    }
    void await_resume() const noexcept {}
};

struct PromiseBase {
    std::suspend_always initial_suspend() const noexcept { return {}; }
    ToWaiter final_suspend() const noexcept { return {}; }
    void unhandled_exception() noexcept { thrown = std::current_exception(); }

    std::coroutine_handle<> waiter;
    std::exception_ptr thrown;
};

template <typename Result>
struct Promise : PromiseBase {
    Task<Result> get_return_object();
    void return_value(Result value) { result.emplace(std::move(value)); }
    Result take() {
        if (thrown) std::rethrow_exception(thrown);
        return std::move(*result);
    }
    std::optional<Result> result;
};

template <>
struct Promise<void> : PromiseBase {
    Task<void> get_return_object();
    void return_void() const noexcept {}
    void take() const {
        if (thrown) std::rethrow_exception(thrown);
    }
};

}  // namespace detail

/// Movable owner of a coroutine. co_await it once; what the coroutine throws is thrown there.
template <typename Result = void>
class [[nodiscard]] Task {
  public:
    using promise_type = detail::Promise<Result>;

    explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
    Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
    Task& operator=(Task&&) = delete;
    ~Task() {
        if (frame_) frame_.destroy();
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) const noexcept {
        frame_.promise().waiter = waiter;
        return frame_;
    }
    Result await_resume() const { return frame_.promise().take(); }

    /// Instead of co_await: runs it up to its first sleep, beside its owner, who may destroy it wherever it
    /// sleeps.
    void start() const {
        frame_.promise().waiter = std::noop_coroutine();
        frame_.resume();
    }

  private:
    std::coroutine_handle<promise_type> frame_;
};

template <typename Result>
Task<Result> detail::Promise<Result>::get_return_object() {
    return Task<Result>(std::coroutine_handle<Promise>::from_promise(*this));
}
inline Task<void> detail::Promise<void>::get_return_object() {
    return Task<void>(std::coroutine_handle<Promise>::from_promise(*this));
}

namespace detail {

/// Owns itself: its frame goes when it ends.
struct Detached {
    struct promise_type {
        Detached get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept {}
    };
};

inline Detached run_detached(Task<void> task) {
    co_await task;
}

}  // namespace detail

/// Starts a task that nobody waits for. What it throws ends that task alone: its objects have been destroyed
/// on the way, which is how they give back what they hold.
inline void spawn(Task<void> task) {
    detail::run_detached(std::move(task));
}

}  // namespace noren::proxy::net
