#pragma once
// Logs as JSON lines: events of noren itself to stderr, one line per exchange to stdout or a file. Written by
// a thread of their own through a bounded queue that drops the oldest: no request ever waits for a log.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.hpp"

namespace noren::proxy {

enum class Level : unsigned char { trace, debug, info, warning, error, off };

Level level_of(std::string_view name);

/// Thread-safe. Flushes on destruction.
class Log {
  public:
    using Field = std::pair<std::string_view, std::string>;

    /// Throws std::runtime_error if the access log's file cannot be opened.
    explicit Log(const config::Log& settings);
    ~Log();
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;

    void event(Level level, std::string_view message, const std::vector<Field>& fields = {});
    /// line: a JSON object, without line end.
    void access(std::string&& line);
    void set_level(Level level);
    /// Lines lost since start because the sink was slower than the traffic.
    std::uint64_t dropped() const;

  private:
    struct Sinks;
    std::unique_ptr<Sinks> sinks_;
};

}  // namespace noren::proxy
