#pragma once
// Where log lines end: a file descriptor that may be slow, stuck or gone, without anybody waiting for it
// longer than they chose to.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace noren::proxy {

/// Blocks of lines, each written with one write(2) where the reader takes it. Lines of several writers on one
/// pipe do not mix, as long as each is within PIPE_BUF. Used by one thread, but for the functions that say
/// otherwise.
class LineWriter {
  public:
    /// Owns fd. Negative (standard output was closed at the start): every line is lost.
    explicit LineWriter(int fd);
    ~LineWriter();
    LineWriter(const LineWriter&) = delete;
    LineWriter& operator=(const LineWriter&) = delete;

    /// lines: each with its end.
    void write(std::string_view lines);

    /// Any thread. From then on a line that cannot be written at once is lost; until then a stuck reader is
    /// waited for. A write that has begun cannot be given up: a terminal may take a few bytes and then block.
    void give_up_at(std::chrono::steady_clock::time_point when);
    /// Any thread. Lines that the reader's end, a full disk or giving up has cost.
    std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  private:
    std::size_t write_out(std::string_view text);
    std::string_view next_piece(std::string_view text) const;
    bool wait_until_writable();
    std::chrono::milliseconds patience_left() const;

    const int fd_;
    const bool is_file_;
    bool torn_ = false;  ///< the last line that was begun has no end
    std::atomic<std::chrono::steady_clock::rep> give_up_at_{
        std::chrono::steady_clock::duration::max().count()};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace noren::proxy
