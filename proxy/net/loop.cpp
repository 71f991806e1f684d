#include "proxy/net/loop.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <iterator>
#include <system_error>
#include <utility>

namespace noren::proxy::net {
namespace {

/// Rounded up: a sleep that ends just before its time would be followed by another one of nothing.
int milliseconds_until(TimePoint at) {
    if (at == k_never) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

int checked(int descriptor) {
    if (descriptor < 0) throw std::system_error(errno, std::generic_category(), "cannot make an event loop");
    return descriptor;
}

}  // namespace

Timer::Timer(Loop& loop, std::function<void()> expired) : loop_(loop), expired_(std::move(expired)) {
    Queue maker;
    unused_ = maker.extract(maker.emplace(k_never, this));
}

void Timer::set(TimePoint at) {
    cancel();
    unused_.key() = at;
    place_ = loop_.timers_.insert(std::move(unused_));
}

void Timer::cancel() {
    if (unused_.empty()) unused_ = loop_.timers_.extract(place_);
}

Loop::Loop()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC))), mail_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN;  // data.ptr empty: the mailbox
    if (mail_ < 0 || ::epoll_ctl(epoll_, EPOLL_CTL_ADD, mail_, &event) != 0) {
        const int error = errno;
        if (mail_ >= 0) ::close(mail_);
        ::close(epoll_);
        errno = error;
        checked(-1);
    }
}

Loop::~Loop() {
    for (const Queue* queue : {&own_, &posted_}) {
        for (Posting* posting = queue->first; posting != nullptr;) {
            Posting* next = posting->next_;
            posting->drop();
            posting = next;
        }
    }
    ::close(mail_);
    ::close(epoll_);
}

void Loop::run() {
    thread_ = std::this_thread::get_id();
    while (!stopped_)
        turn(k_never);
}

void Loop::turn(TimePoint until) {
    thread_ = std::this_thread::get_id();
    if (!timers_.empty()) until = std::min(until, timers_.begin()->first);
    reported_ = await_events(until);
    const bool all_reported = reported_ < events_.size();
    bool mail = false;
    for (std::size_t i = 0; i < reported_; ++i) {
        if (auto* watcher = static_cast<Watcher*>(events_[i].data.ptr)) {
            watcher->ready(events_[i].events);
        } else if (events_[i].events != 0) {
            mail = true;
        }
    }
    reported_ = 0;
    if (mail || !own_.empty()) run_posted(mail);
    // What is due may be so only because the process was held up: first what has come meanwhile.
    if (all_reported || ++turns_without_timers_ == k_most_turns_without_timers) run_due_timers();
}

/// A signal, such as the one that lets a stopped process go on, ends no wait.
std::size_t Loop::await_events(TimePoint until) {
    for (;;) {
        const int timeout = own_.empty() ? milliseconds_until(until) : 0;
        const int count = ::epoll_wait(epoll_, events_.data(), static_cast<int>(events_.size()), timeout);
        if (count >= 0) return static_cast<std::size_t>(count);
        if (errno != EINTR) return 0;
    }
}

void Loop::run_due_timers() {
    turns_without_timers_ = 0;
    if (timers_.empty()) return;
    const TimePoint now = Clock::now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
        Timer* timer = timers_.begin()->second;
        timer->cancel();
        const std::function<void()> expired = timer->expired_;  // which may be the end of the timer
        expired();
    }
}

void Loop::Queue::add(Posting& posting) {
    posting.next_ = nullptr;
    (last ? last->next_ : first) = &posting;
    last = &posting;
}

void Loop::run_all(Queue& queue) {
    for (const auto& task : queue.tasks)
        task();
    for (Posting* posting = queue.first; posting != nullptr;) {
        Posting* next = posting->next_;
        posting->run();
        posting = next;
    }
}

/// What is posted meanwhile has to wait for the next turn.
void Loop::run_posted(bool mail) {
    Queue now = std::exchange(own_, {});
    run_all(now);
    std::uint64_t count = 0;
    if (!mail || ::read(mail_, &count, sizeof count) <= 0) return;
    Queue from_others;
    {
        const std::lock_guard lock(mutex_);
        from_others = std::exchange(posted_, {});
    }
    run_all(from_others);
}

bool Loop::is_own_thread() const {
    return std::this_thread::get_id() == thread_.load(std::memory_order_relaxed);
}

/// Can only fail by being full, and then it wakes as well.
void Loop::wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(mail_, &one, sizeof one);
}

void Loop::post(std::function<void()> task) {
    if (is_own_thread()) {
        own_.tasks.push_back(std::move(task));
        return;
    }
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        first = posted_.empty();
        posted_.tasks.push_back(std::move(task));
    }
    if (first) wake();
}

void Loop::post(Posting& posting) noexcept {
    if (is_own_thread()) {
        own_.add(posting);
        return;
    }
    bool first = false;
    {
        const std::lock_guard lock(mutex_);
        first = posted_.empty();
        posted_.add(posting);
    }
    if (first) wake();
}

int Loop::watch(int descriptor, Watcher& watcher) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = &watcher;
    return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
}

int Loop::watch_shared(int descriptor, Watcher& watcher) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLEXCLUSIVE;
    event.data.ptr = &watcher;
    return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : errno;
}

void Loop::unwatch(int descriptor) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void Loop::forget(const Watcher& watcher) {
    for (std::size_t i = 0; i < reported_; ++i) {
        if (events_[i].data.ptr != &watcher) continue;
        events_[i].data.ptr = nullptr;
        events_[i].events = 0;
    }
}

}  // namespace noren::proxy::net
