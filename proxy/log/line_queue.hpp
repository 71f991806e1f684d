#pragma once
// Lines on their way from the threads that have something to say to the one that writes it out.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

namespace noren::proxy {

/// Thread-safe. Nobody who adds a line waits for its reader: when the queue is full, its oldest lines are
/// dropped and counted. Lines lie one behind another in blocks, as they will be written: thousands in a
/// second cost no allocation each and few wake-ups.
class LineQueue {
  public:
    using Clock = std::chrono::steady_clock;

    /// limit: bytes that may wait, in eight blocks or, if those would be over 64 KiB, in more.
    explicit LineQueue(std::size_t limit);

    /// line: without its end. Without memory for it, it is dropped.
    void add(std::string_view line) noexcept;
    /// The block of oldest lines, each with its end, instead of what `block` held. Waits until there are
    /// some; until `rested` for a whole block, or the close. False: closed, and none are left. One thread
    /// only.
    bool take(std::string& block, Clock::time_point rested);
    /// No more lines come.
    void close();
    /// Lines, since the beginning.
    std::uint64_t dropped() const;

  private:
    struct Block {
        std::string text;
        std::uint64_t lines = 0;
    };
    enum class Wanted : unsigned char { nothing, line, block };

    void append(std::string_view line);
    void drop_oldest();
    bool is_wanted() const;

    const std::size_t limit_, block_size_;
    mutable std::mutex mutex_;
    std::condition_variable there_is_;
    Wanted wanted_ = Wanted::nothing;  ///< what take() waits for
    std::deque<Block> blocks_;
    std::size_t waiting_ = 0;  ///< bytes in them
    std::string spare_;        ///< of a block that was taken
    std::uint64_t dropped_ = 0;
    bool closed_ = false;
};

}  // namespace noren::proxy
