#include "config/watch.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <variant>

#include "config/read_file.hpp"
#include "config/watch_points.hpp"

namespace noren::config {

namespace {

// Not IN_MODIFY: a log that somebody writes in the same directory would wake us with every line.
constexpr std::uint32_t k_entry_events =
    IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::uint32_t k_directory_events = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t k_lost_events = k_directory_events | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;

/// What a name has just been made for: a file, which comes with somebody who writes it, and not a link. Its
/// first bytes may have been written before it could be watched.
bool is_opened_by_creator(const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1;
}

}  // namespace

FileWatcher::FileWatcher(std::string path, std::string_view loaded, Events events, Read read)
    : path_(std::move(path)),
      read_(read ? std::move(read) : if_readable),
      seen_(loaded),
      fd_(events == Events::inotify ? ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1) {
    arm();
}

FileWatcher::~FileWatcher() {
    if (fd_ >= 0) ::close(fd_);
}

void FileWatcher::arm() {
    if (fd_ < 0) return;
    std::map<int, std::set<std::string>> watches;
    for (const WatchPoint& point : watch_points(path_)) {
        const int watch = ::inotify_add_watch(fd_, point.directory.c_str(),
                                              k_entry_events | k_directory_events | IN_ONLYDIR);
        if (watch >= 0) watches[watch].insert(point.name);
    }
    for (const auto& [watch, names] : watches_) {
        if (!watches.contains(watch)) ::inotify_rm_watch(fd_, watch);
    }
    watches_ = std::move(watches);
    const int file = ::inotify_add_watch(fd_, path_.c_str(), IN_MODIFY | IN_CLOSE_WRITE | IN_MASK_ADD);
    if (file_ >= 0 && file_ != file) ::inotify_rm_watch(fd_, file_);
    file_ = file;
}

bool FileWatcher::drain_events() {
    bool is_news = false;
    alignas(inotify_event) char events[16 * 1024];
    while (fd_ >= 0) {
        const ssize_t got = ::read(fd_, events, sizeof events);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        for (const char* at = events; at < events + got;) {
            inotify_event event;
            std::memcpy(&event, at, sizeof event);
            const char* const name = at + sizeof event;
            at = name + event.len;

            if ((event.mask & k_lost_events) != 0) {
                is_news |= event.wd < 0 || watches_.contains(event.wd);
                continue;
            }
            if (event.wd == file_) {
                being_written_ = (event.mask & IN_MODIFY) != 0;
                is_news |= !being_written_;
            }
            const auto watch = watches_.find(event.wd);
            if (watch == watches_.end() || event.len == 0 || !watch->second.contains(name)) continue;
            if ((event.mask & IN_ATTRIB) == 0) being_written_ = false;
            if ((event.mask & IN_CREATE) != 0) being_written_ = is_opened_by_creator(path_);
            is_news = true;
        }
    }
    // At once, not only at the next look: what comes back may be on its way already.
    if (is_news) arm();
    return is_news;
}

std::optional<std::string> FileWatcher::changed_content() {
    // First armed, then read: a change after the reading makes an event.
    arm();
    if (std::exchange(being_written_, false)) return std::nullopt;
    std::optional<std::string> text = read_(path_);
    if (!text || *text == seen_) {
        was_empty_ = false;
        return std::nullopt;
    }
    if (text->empty() && !std::exchange(was_empty_, true)) return std::nullopt;
    was_empty_ = false;
    seen_ = *text;
    return text;
}

std::optional<std::string> FileWatcher::if_readable(const std::string& path) {
    auto file = read_file(path);
    auto* text = std::get_if<std::string>(&file);
    return text ? std::optional(std::move(*text)) : std::nullopt;
}

void FileWatcher::remember(std::string_view loaded) {
    seen_ = loaded;
}

}  // namespace noren::config
