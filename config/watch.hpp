#pragma once
// Notices that the configuration file has new content, however it got there: a ConfigMap's `..data` swap, an
// atomic rename, an in-place edit, an editor's save, a directory that goes and comes back.
//
// inotify only says when to look; what counts is the content. So a watcher without inotify (no instance left
// on the node, a file system that does not report) works too, by being asked now and then. When to ask is
// reload_schedule.hpp. No loop of its own and no thread: give fd() to any loop. Not thread-safe.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace noren::config {

class FileWatcher {
  public:
    enum class Events { inotify, none };
    /// The content at a path; nothing = as if there were no news. By default that of a file that can be read.
    using Read = std::function<std::optional<std::string>(const std::string& path)>;

    /// `loaded` is the content in force: only something else is news. The file need not exist.
    FileWatcher(std::string path, std::string_view loaded, Events events = Events::inotify, Read read = {});
    ~FileWatcher();
    FileWatcher(const FileWatcher&) = delete;
    FileWatcher& operator=(const FileWatcher&) = delete;

    /// Becomes readable when there may be news; -1 = no inotify, polling only. Stays the same.
    int fd() const noexcept { return fd_; }

    /// Takes all waiting events; true if the file should be looked at. A file being written is not news until
    /// its writer closes it.
    bool drain_events();

    /// The content, if it differs from the last that was given out (or loaded). Nothing while the file is
    /// missing or unreadable, unless `read` makes something of that: the old configuration stays in force.
    /// What could be a file caught in the middle of being written (empty, or its writer known to be at it) is
    /// believed only at the second look.
    std::optional<std::string> changed_content();

    /// The last look found what is to be believed only at the second, and events are seen: whoever is still
    /// writing will make one, so the second need not wait long.
    bool wants_second_look() const noexcept { return was_empty_ && fd_ >= 0; }

    /// Content that came into force by another way, such as SIGHUP.
    void remember(std::string_view loaded);

  private:
    static std::optional<std::string> if_readable(const std::string& path);
    void arm();

    std::string path_;
    Read read_;
    std::string seen_;  ///< the content itself: exact, and at most 1 MiB
    int fd_ = -1;
    /// Watched directory -> the names in it that the way to the file leads over.
    std::map<int, std::set<std::string>> watches_;
    int file_ = -1;  ///< the watch on the file itself, whatever name it is written by
    bool being_written_ = false;
    bool was_empty_ = false;  ///< at the last look, and not yet believed
};

}  // namespace noren::config
