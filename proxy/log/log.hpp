#pragma once
// Logs as JSON lines: events of noren itself to stderr, one line per exchange to stdout or a file. Each kind
// has its own bounded queue and its own thread: no request ever waits for a log, and a flood of access lines
// never costs an event. A full queue drops its oldest lines and counts them.

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.hpp"

namespace noren::proxy {

enum class Level : unsigned char { trace, debug, info, warning, error, off };

/// By its name in the config; info for any other.
Level level_of(std::string_view name);

struct LogOutputs {
    int events = STDERR_FILENO;                   ///< duplicated, so it stays the caller's
    int access_stdout = STDOUT_FILENO;            ///< where "stdout" leads; duplicated
    std::size_t access_queue = 8 << 20;           ///< bytes: some 12,000 lines
    std::size_t event_queue = 1 << 20;            ///< bytes
    std::chrono::milliseconds last_words{2'000};  ///< how long the end waits for a reader that is stuck
};

/// Thread-safe. Destruction writes what is queued; for a stuck reader it waits last_words and a moment.
class Log {
  public:
    using Field = std::pair<std::string_view, std::string>;

    /// Throws std::runtime_error if the access log's file cannot be opened.
    explicit Log(const config::Log& settings, const LogOutputs& outputs = {});
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    void event(Level level, std::string_view message, const std::vector<Field>& fields = {});
    /// line: a JSON object, without line end.
    void access(std::string_view line);
    void set_level(Level level);
    /// Lines lost since start: the queue was full, the reader gone, the disk full.
    std::uint64_t dropped() const;

  private:
    class Stream;
    struct Streams;
    std::unique_ptr<Streams> streams_;
};

}  // namespace noren::proxy
