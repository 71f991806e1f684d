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

#include "metrics/json_line.hpp"
#include "proxy/log/line_queue.hpp"
#include "proxy/log/line_writer.hpp"

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

/// Takes no signal from its first moment on, however late that is: the reader of a log going away must not
/// end the process, and all others are for the main thread.
template <typename Work>
std::thread log_thread(Work work) {
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // a thread begins with the mask of who makes it
    const auto restore = [](const sigset_t* mask) { ::pthread_sigmask(SIG_SETMASK, mask, nullptr); };
    const std::unique_ptr<const sigset_t, decltype(restore)> blocked(&before, restore);
    return std::thread([work = std::move(work)]() mutable {
        ::pthread_setname_np(::pthread_self(), "noren-log");
        work();
    });
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
    /// queue: bytes. rest: of the thread after each write, unless there is a whole block to write: so that
    /// many lines cost few wake-ups. What comes after a quiet time is written at once.
    Stream(int fd, std::size_t queue, std::chrono::milliseconds last_words,
           std::chrono::milliseconds rest = {})
        : last_words_(last_words), path_(std::make_shared<Path>(fd, queue)) {
        std::promise<void> over;
        over_ = over.get_future();
        thread_ = log_thread([path = path_, rest, over = std::move(over)]() mutable {
            path->serve(rest);
            path.reset();
            over.set_value();
        });
    }

    /// Takes no more lines, and writes what is queued for as long as its reader takes it, until last_words
    /// are over. The wait for that is the destructor's.
    void finish() {
        if (finished_) return;
        finished_ = true;
        give_up_at_ = std::chrono::steady_clock::now() + last_words_;
        path_->writer.give_up_at(give_up_at_);
        path_->queue.close();
    }
    /// The thread may hang in a write. Then it is left behind: the process ends around it.
    ~Stream() {
        finish();
        if (over_.wait_until(give_up_at_ + k_grace) == std::future_status::ready) {
            thread_.join();
        } else {
            thread_.detach();
        }
    }

    void write(std::string_view line) { path_->queue.add(line); }
    std::uint64_t dropped() const { return path_->queue.dropped() + path_->writer.lost(); }

  private:
    /// What the thread needs, also when it is left behind.
    struct Path {
        Path(int fd, std::size_t limit) : queue(limit), writer(fd) {}
        void serve(std::chrono::milliseconds rest) {
            std::string block;
            for (LineQueue::Clock::time_point rested{}; queue.take(block, rested);) {
                writer.write(block);
                rested = LineQueue::Clock::now() + rest;
            }
        }

        LineQueue queue;
        LineWriter writer;
    };

    const std::chrono::milliseconds last_words_;
    const std::shared_ptr<Path> path_;
    std::future<void> over_;
    std::thread thread_;
    bool finished_ = false;
    std::chrono::steady_clock::time_point give_up_at_;
};

struct Log::Streams {
    std::optional<Stream> events;
    std::optional<Stream> access;
    std::atomic<Level> level{Level::info};
};

Log::Log(const config::Log& settings, const LogOutputs& outputs) : streams_(std::make_unique<Streams>()) {
    streams_->events.emplace(duplicate(outputs.events), outputs.event_queue, outputs.last_words);
    if (settings.access != "off") {
        const int fd =
            settings.access == "stdout" ? duplicate(outputs.access_stdout) : open_file(settings.access);
        streams_->access.emplace(fd, outputs.access_queue, outputs.last_words, k_access_rest);
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
    const std::string text = std::move(line).finish();
    streams_->events->write(text);
}

void Log::access(std::string_view line) {
    if (streams_->access) streams_->access->write(line);
}

void Log::set_level(Level level) {
    streams_->level.store(level, std::memory_order_relaxed);
}

std::uint64_t Log::dropped() const {
    return streams_->events->dropped() + (streams_->access ? streams_->access->dropped() : 0);
}

}  // namespace noren::proxy
