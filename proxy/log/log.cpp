#include "proxy/log/log.hpp"

#include <array>
#include <atomic>
#include <chrono>

#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "metrics/access_log.hpp"

namespace noren::proxy {
namespace {

constexpr std::array<std::string_view, 6> k_level_names = {"trace",   "debug", "info",
                                                           "warning", "error", "off"};
// A second of access lines at 16,000 requests per second; about 20 MB when full.
constexpr std::size_t k_queue = 16'384;

std::shared_ptr<spdlog::sinks::sink> access_sink(const std::string& where) {
    if (where == "off") return nullptr;
    if (where == "stdout") return std::make_shared<spdlog::sinks::stdout_sink_mt>();
    return std::make_shared<spdlog::sinks::basic_file_sink_mt>(where);
}

std::shared_ptr<spdlog::async_logger> logger(const char* name, std::shared_ptr<spdlog::sinks::sink> sink,
                                             const std::shared_ptr<spdlog::details::thread_pool>& pool) {
    auto made = std::make_shared<spdlog::async_logger>(name, std::move(sink), pool,
                                                       spdlog::async_overflow_policy::overrun_oldest);
    made->set_pattern("%v");
    made->flush_on(spdlog::level::warn);
    return made;
}

}  // namespace

Level level_of(std::string_view name) {
    for (std::size_t i = 0; i < k_level_names.size(); ++i)
        if (k_level_names[i] == name) return static_cast<Level>(i);
    return Level::info;
}

struct Log::Sinks {
    std::shared_ptr<spdlog::details::thread_pool> pool =
        std::make_shared<spdlog::details::thread_pool>(k_queue, 1);
    std::shared_ptr<spdlog::async_logger> events;
    std::shared_ptr<spdlog::async_logger> access;
    std::atomic<Level> level{Level::info};
};

Log::Log(const config::Log& settings) : sinks_(std::make_unique<Sinks>()) {
    sinks_->events = logger("events", std::make_shared<spdlog::sinks::stderr_sink_mt>(), sinks_->pool);
    if (auto sink = access_sink(settings.access))
        sinks_->access = logger("access", std::move(sink), sinks_->pool);
    set_level(level_of(settings.level));
}

Log::~Log() = default;

void Log::event(Level level, std::string_view message, const std::vector<Field>& fields) {
    if (level < sinks_->level.load(std::memory_order_relaxed)) return;
    metrics::JsonLine line;
    line.add("time", metrics::rfc3339_now()).add("level", k_level_names[static_cast<std::size_t>(level)]);
    line.add("msg", message);
    for (const auto& [key, value] : fields)
        line.add(key, value);
    sinks_->events->log(spdlog::level::warn, std::move(line).finish());
}

void Log::access(std::string&& line) {
    if (sinks_->access) sinks_->access->log(spdlog::level::info, line);
}

void Log::set_level(Level level) {
    sinks_->level.store(level, std::memory_order_relaxed);
}

std::uint64_t Log::dropped() const {
    return sinks_->pool->overrun_counter();
}

}  // namespace noren::proxy
