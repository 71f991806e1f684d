#pragma once
// Where log lines end: a file descriptor that may be slow, stuck or gone, without anybody waiting for it
// longer than they chose to.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

namespace noren::proxy {

/// Messages as lines, as many with one write(2) as are there. Lines of several writers on one pipe do not
/// mix, as long as each is within PIPE_BUF. Used by one thread, but for the functions that say otherwise.
class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  public:
    /// When what was written is written out.
    struct Pace {
        /// More messages are waiting: they go out together. Empty: each goes out alone, at once.
        std::function<bool()> more_follow;
        /// After each write, so that many lines cost few wake-ups of the writing thread; what comes after a
        /// quiet time is written at once.
        std::chrono::milliseconds rest{0};
    };

    /// Owns fd. Negative (standard output was closed at the start): every line is lost.
    explicit DescriptorSink(int fd);
    /// Before the first message.
    void set_pace(Pace pace) { pace_ = std::move(pace); }
    ~DescriptorSink() override;

    /// Any thread. From then on a line that cannot be written at once is lost; until then a stuck reader is
    /// waited for. A write that has begun cannot be given up: a terminal may take a few bytes and then block.
    void give_up_at(std::chrono::steady_clock::time_point when);
    /// Any thread. Lines that the reader's end, a full disk or giving up has cost.
    std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  private:
    void sink_it_(const spdlog::details::log_msg& message) override;
    void flush_() override { write_lines(); }
    void write_lines();
    std::size_t write_out(std::string_view text);
    std::string_view next_piece(std::string_view text) const;
    bool wait_until_writable();
    std::chrono::milliseconds patience_left() const;

    const int fd_;
    const bool is_file_;
    Pace pace_;
    std::string lines_;  ///< not written yet
    bool torn_ = false;  ///< the last line that was begun has no end
    std::atomic<std::chrono::steady_clock::rep> give_up_at_{
        std::chrono::steady_clock::duration::max().count()};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace noren::proxy
