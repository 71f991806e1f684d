#include "proxy/log/line_writer.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

namespace noren::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How long giving up may go unnoticed.
constexpr milliseconds k_look{100};
// When poll() calls a pipe writable, this much goes in without blocking.
constexpr std::size_t k_piece = PIPE_BUF;

bool is_regular_file(int fd) {
    struct stat status{};
    return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

LineWriter::LineWriter(int fd) : fd_(fd), is_file_(is_regular_file(fd)) {}

LineWriter::~LineWriter() {
    if (fd_ >= 0) ::close(fd_);
}

void LineWriter::give_up_at(steady_clock::time_point when) {
    give_up_at_.store(when.time_since_epoch().count(), std::memory_order_relaxed);
}

void LineWriter::write(std::string_view lines) {
    // What is left of a line that was cut stands there alone.
    const bool whole = !torn_ || write_out("\n") == 1;
    const std::size_t written = whole ? write_out(lines) : 0;
    torn_ = written > 0 ? lines[written - 1] != '\n' : !whole;
    const auto lost = std::count(lines.begin() + static_cast<std::ptrdiff_t>(written), lines.end(), '\n');
    lost_.fetch_add(static_cast<std::uint64_t>(lost), std::memory_order_relaxed);
}

/// How much of it went out.
std::size_t LineWriter::write_out(std::string_view text) {
    std::size_t done = 0;
    while (done < text.size() && wait_until_writable()) {
        const std::string_view piece = next_piece(text.substr(done));
        const ssize_t written = ::write(fd_, piece.data(), piece.size());
        if (written < 0 && errno != EAGAIN && errno != EINTR) break;
        if (written > 0) done += static_cast<std::size_t>(written);
    }
    return done;
}

/// Whole lines as far as they fit, else a part of one.
std::string_view LineWriter::next_piece(std::string_view text) const {
    if (is_file_ || text.size() <= k_piece) return text;
    const std::size_t end = text.rfind('\n', k_piece - 1);
    return text.substr(0, end == std::string_view::npos ? k_piece : end + 1);
}

bool LineWriter::wait_until_writable() {
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

milliseconds LineWriter::patience_left() const {
    const steady_clock::time_point end{steady_clock::duration(give_up_at_.load(std::memory_order_relaxed))};
    const auto now = steady_clock::now();
    if (now >= end) return milliseconds(0);
    return std::min(k_look, std::chrono::ceil<milliseconds>(end - now));
}

}  // namespace noren::proxy
