#pragma once
// Where log lines end: a file descriptor that may be slow, stuck or gone, without anybody waiting for it
// longer than they chose to.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

namespace noren::proxy {

/// Writes each message and a line end with one write(2), at once: lines of several writers on one pipe do not
/// mix (up to PIPE_BUF), and whoever tails a file sees the line now. Used by one thread, but for the
/// functions that say otherwise.
class DescriptorSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  public:
    /// Owns fd. Negative (standard output was closed at the start): every line is lost.
    explicit DescriptorSink(int fd) : fd_(fd) {}
    ~DescriptorSink() override;

    /// Any thread. From then on a line that cannot be written at once is lost; until then a stuck reader is
    /// waited for. A write that has begun cannot be given up: a terminal may take a few bytes and then block.
    void give_up_at(std::chrono::steady_clock::time_point when);
    /// Any thread. Lines that the reader's end, a full disk or giving up has cost.
    std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  private:
    void sink_it_(const spdlog::details::log_msg& message) override;
    void flush_() override {}
    std::size_t write_out(std::string_view text);
    bool wait_until_writable();
    std::chrono::milliseconds patience_left() const;

    const int fd_;
    std::string line_;
    bool torn_ = false;  ///< the last line that was begun has no end
    std::atomic<std::chrono::steady_clock::rep> give_up_at_{
        std::chrono::steady_clock::duration::max().count()};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace noren::proxy
