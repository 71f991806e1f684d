#include "config/watch.hpp"

#include <sys/inotify.h>
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

constexpr std::uint32_t k_entry_events =
    IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::uint32_t k_directory_events = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t k_lost_events = k_directory_events | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW;

}  // namespace

FileWatcher::FileWatcher(std::string path, std::string_view loaded, Events events)
    : path_(std::move(path)),
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
            const auto watch = watches_.find(event.wd);
            if (watch == watches_.end() || event.len == 0 || !watch->second.contains(name)) continue;
            if ((event.mask & IN_MODIFY) != 0) {
                being_written_ = true;
                continue;
            }
            if ((event.mask & IN_ATTRIB) == 0) being_written_ = false;
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
    auto file = read_file(path_);
    auto* text = std::get_if<std::string>(&file);
    if (!text || *text == seen_) {
        was_empty_ = false;
        return std::nullopt;
    }
    if (text->empty() && !std::exchange(was_empty_, true)) return std::nullopt;
    was_empty_ = false;
    seen_ = *text;
    return std::move(*text);
}

void FileWatcher::remember(std::string_view loaded) {
    seen_ = loaded;
}

}  // namespace noren::config
