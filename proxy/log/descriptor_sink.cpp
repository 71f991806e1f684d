#include "proxy/log/descriptor_sink.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace noren::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long giving up may go unnoticed.
constexpr milliseconds k_look{100};
// When poll() calls a pipe writable, this much goes in without blocking.
constexpr std::size_t k_piece = PIPE_BUF;

}  // namespace

DescriptorSink::~DescriptorSink() {
    if (fd_ >= 0) ::close(fd_);
}

void DescriptorSink::give_up_at(steady_clock::time_point when) {
    give_up_at_.store(when.time_since_epoch().count(), std::memory_order_relaxed);
}

void DescriptorSink::sink_it_(const spdlog::details::log_msg& message) {
    // What is left of a line that was cut stands there alone.
    line_.assign(torn_ ? "\n" : "");
    line_.append(message.payload.data(), message.payload.size());
    line_.push_back('\n');
    const std::size_t written = write_out(line_);
    if (written < line_.size()) lost_.fetch_add(1, std::memory_order_relaxed);
    if (written > 0) torn_ = written < line_.size();
}

/// How much of it went out.
std::size_t DescriptorSink::write_out(std::string_view text) {
    std::size_t done = 0;
    while (done < text.size() && wait_until_writable()) {
        const std::string_view piece = text.substr(done, k_piece);
        const ssize_t written = ::write(fd_, piece.data(), piece.size());
        if (written < 0 && errno != EAGAIN && errno != EINTR) break;
        if (written > 0) done += static_cast<std::size_t>(written);
    }
    return done;
}

bool DescriptorSink::wait_until_writable() {
    // poll() does not look at a negative descriptor and so would wait for ever.
    while (fd_ >= 0) {
        const milliseconds patience = patience_left();
        pollfd look{fd_, POLLOUT, 0};
        const int ready = ::poll(&look, 1, static_cast<int>(patience.count()));
        if (ready > 0) return (look.revents & POLLOUT) != 0;
        if (ready == 0 && patience.count() == 0) return false;
        if (ready < 0 && errno != EINTR) return false;
    }
    return false;
}

milliseconds DescriptorSink::patience_left() const {
    const steady_clock::time_point end{steady_clock::duration(give_up_at_.load(std::memory_order_relaxed))};
    const auto now = steady_clock::now();
    if (now >= end) return milliseconds(0);
    return std::min(k_look, std::chrono::ceil<milliseconds>(end - now));
}

}  // namespace noren::proxy
