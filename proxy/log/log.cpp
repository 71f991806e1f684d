#include "proxy/log/log.hpp"

#include <fcntl.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <spdlog/async.h>
#include <spdlog/async_logger.h>

#include "metrics/json_line.hpp"
#include "proxy/log/descriptor_sink.hpp"

namespace noren::proxy {
namespace {

constexpr std::array<std::string_view, 6> k_level_names = {"trace",   "debug", "info",
                                                           "warning", "error", "off"};

// Lines of exchanges come by the thousand: no wake-up for each. Events of noren itself are told at once.
constexpr std::chrono::milliseconds k_access_rest{20};

// Beyond the last words: time to see that they are over and to throw the rest away.
constexpr std::chrono::milliseconds k_grace{500};

int duplicate(int fd) {
    return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/// Appending, so that others may write to or cut the file as well; non-blocking, so that a pipe without a
/// reader is an error here and not a wait.
int open_file(const std::string& path) {
    std::error_code no_folder;  // open() then says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), no_folder);
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
    if (fd < 0)
        throw std::runtime_error("cannot open the access log " + path + ": " +
                                 std::generic_category().message(errno));
    return fd;
}

/// A pool of one thread, which takes no signal from its first moment on, however late that is: the reader of
/// a log going away must not end the process, and all others are for the main thread.
std::shared_ptr<spdlog::details::thread_pool> make_pool(std::size_t queue) {
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with the mask of who makes it
    const auto restore = [](const sigset_t* mask) { ::pthread_sigmask(SIG_SETMASK, mask, nullptr); };
    const std::unique_ptr<const sigset_t, decltype(restore)> blocked(&before, restore);
    const auto name = [] { ::pthread_setname_np(::pthread_self(), "noren-log"); };
    return std::make_shared<spdlog::details::thread_pool>(queue, 1, name);
}

}  // namespace

Level level_of(std::string_view name) {
    for (std::size_t i = 0; i < k_level_names.size(); ++i)
        if (k_level_names[i] == name) return static_cast<Level>(i);
    return Level::info;
}

/// One output with its queue and thread.
class Log::Stream {
  public:
    /// rest: DescriptorSink::Pace.
    Stream(const char* name, int fd, std::size_t queue, std::chrono::milliseconds last_words,
           std::chrono::milliseconds rest = {})
        : last_words_(last_words),
          sink_(std::make_shared<DescriptorSink>(fd)),
          pool_(make_pool(queue)),
          logger_(std::make_shared<spdlog::async_logger>(name, sink_, pool_,
                                                         spdlog::async_overflow_policy::overrun_oldest)) {
        // The pool is there for as long as its thread, which is who asks.
        sink_->set_pace({[&pool = *pool_] { return pool.queue_size() > 0; }, rest});
    }

    /// Takes no more lines, and writes what is queued for as long as its reader takes it, until last_words
    /// are over. The wait for that is the destructor's.
    void finish() {
        if (over_.valid()) return;
        give_up_at_ = std::chrono::steady_clock::now() + last_words_;
        sink_->give_up_at(give_up_at_);
        // The pool's destructor waits for its thread, and that may hang in a write. So another thread waits
        // for both, and is left behind with them when it takes too long: the process ends around them.
        std::promise<void> over;
        over_ = over.get_future();
        std::thread([pool = std::move(pool_), logger = std::move(logger_), sink = sink_,
                     over = std::move(over)]() mutable {
            pool.reset();
            sink->flush();  // lines that waited for more
            logger.reset();
            over.set_value();
        }).detach();
    }
    ~Stream() {
        finish();
        over_.wait_until(give_up_at_ + k_grace);
    }

    void write(const std::string& line) { logger_->log(spdlog::level::info, spdlog::string_view_t(line)); }
    std::uint64_t dropped() const { return pool_->overrun_counter() + sink_->lost(); }

  private:
    const std::chrono::milliseconds last_words_;
    std::chrono::steady_clock::time_point give_up_at_;
    std::future<void> over_;
    std::shared_ptr<DescriptorSink> sink_;
    std::shared_ptr<spdlog::details::thread_pool> pool_;
    std::shared_ptr<spdlog::async_logger> logger_;
};

struct Log::Streams {
    std::optional<Stream> events;
    std::optional<Stream> access;
    std::atomic<Level> level{Level::info};
};

Log::Log(const config::Log& settings, const LogOutputs& outputs) : streams_(std::make_unique<Streams>()) {
    streams_->events.emplace("events", duplicate(outputs.events), outputs.event_queue, outputs.last_words);
    if (settings.access != "off") {
        const int fd =
            settings.access == "stdout" ? duplicate(outputs.access_stdout) : open_file(settings.access);
        streams_->access.emplace("access", fd, outputs.access_queue, outputs.last_words, k_access_rest);
    }
    set_level(level_of(settings.level));
}

Log::~Log() {
    // Both at once: two stuck readers hold up the end no longer than one.
    streams_->events->finish();
    if (streams_->access) streams_->access->finish();
}

void Log::event(Level level, std::string_view message, const std::vector<Field>& fields) {
    if (level < streams_->level.load(std::memory_order_relaxed)) return;
    metrics::JsonLine line;
    line.add("time", metrics::rfc3339_now()).add("level", k_level_names[static_cast<std::size_t>(level)]);
    line.add("msg", message);
    for (const auto& [key, value] : fields)
        line.add(key, value);
    streams_->events->write(std::move(line).finish());
}

void Log::access(std::string&& line) {
    if (streams_->access) streams_->access->write(line);
}

void Log::set_level(Level level) {
    streams_->level.store(level, std::memory_order_relaxed);
}

std::uint64_t Log::dropped() const {
    return streams_->events->dropped() + (streams_->access ? streams_->access->dropped() : 0);
}

}  // namespace noren::proxy
