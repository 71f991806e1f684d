#include "proxy/log/line_queue.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace noren::proxy {
namespace {

// With a reader that keeps up two are in use: one is filled while the other is written.
constexpr std::size_t k_blocks = 8, k_largest_block = 64 * 1024;

}  // namespace

LineQueue::LineQueue(std::size_t limit)
    : limit_(limit), block_size_(std::min(limit / k_blocks, k_largest_block)) {}

void LineQueue::add(std::string_view line) noexcept {
    std::unique_lock lock(mutex_);
    try {
        append(line);
    } catch (const std::bad_alloc&) {
        ++dropped_;
    }
    while (waiting_ > limit_ && blocks_.size() > 1)
        drop_oldest();
    if (!is_wanted()) return;
    wanted_ = Wanted::nothing;
    lock.unlock();
    there_is_.notify_one();
}

bool LineQueue::take(std::string& block, Clock::time_point rested) {
    std::unique_lock lock(mutex_);
    // The oldest block is whole once there is one behind it.
    for (wanted_ = Wanted::block; !closed_ && blocks_.size() < 2; wanted_ = Wanted::block)
        if (there_is_.wait_until(lock, rested) == std::cv_status::timeout) break;
    for (wanted_ = Wanted::line; !closed_ && blocks_.empty(); wanted_ = Wanted::line)
        there_is_.wait(lock);
    wanted_ = Wanted::nothing;
    if (blocks_.empty()) return false;
    waiting_ -= blocks_.front().text.size();
    block.swap(blocks_.front().text);
    if (blocks_.front().text.capacity() <= 2 * block_size_) spare_.swap(blocks_.front().text);
    blocks_.pop_front();
    return true;
}

void LineQueue::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    there_is_.notify_one();
}

std::uint64_t LineQueue::dropped() const {
    const std::lock_guard lock(mutex_);
    return dropped_;
}

void LineQueue::append(std::string_view line) {
    if (blocks_.empty() || blocks_.back().text.size() + line.size() + 1 > block_size_) {
        Block next{std::exchange(spare_, {}), 0};
        next.text.clear();
        next.text.reserve(std::max(block_size_, line.size() + 1));
        blocks_.push_back(std::move(next));
    }
    Block& last = blocks_.back();
    last.text.append(line).push_back('\n');
    ++last.lines;
    waiting_ += line.size() + 1;
}

void LineQueue::drop_oldest() {
    waiting_ -= blocks_.front().text.size();
    dropped_ += blocks_.front().lines;
    blocks_.pop_front();
}

/// Is there now what take() waits for?
bool LineQueue::is_wanted() const {
    return (wanted_ == Wanted::line && !blocks_.empty()) || (wanted_ == Wanted::block && blocks_.size() > 1);
}

}  // namespace noren::proxy
