#include "config/watch_points.hpp"

#include <deque>
#include <filesystem>
#include <system_error>

namespace noren::config {

namespace {

constexpr int k_most_symlinks = 40;  // as the kernel's MAXSYMLINKS; ends loops

void prepend(std::deque<std::string>& names, const std::filesystem::path& path) {
    auto at = names.begin();
    for (const auto& part : path)
        at = names.insert(at, part.string()) + 1;
}

}  // namespace

std::vector<WatchPoint> watch_points(const std::string& path) {
    namespace fs = std::filesystem;
    std::vector<WatchPoint> points;
    fs::path here = ".";
    std::deque<std::string> names;
    prepend(names, path);
    for (int symlinks = 0; !names.empty();) {
        const std::string name = std::move(names.front());
        names.pop_front();
        if (name == "/") {
            here = "/";
            continue;
        }
        if (name.empty() || name == ".") continue;
        const fs::path entry = here / name;
        std::error_code error;
        const fs::file_status status = fs::symlink_status(entry, error);
        if (fs::is_symlink(status)) {
            points.push_back({here.string(), name});
            const fs::path target = fs::read_symlink(entry, error);
            if (error || ++symlinks > k_most_symlinks) return points;
            prepend(names, target);
            continue;
        }
        const bool is_end = names.empty() || !fs::is_directory(status);
        if (is_end && name != "..") {
            points.push_back({here.string(), name});
            return points;
        }
        here = entry;
    }
    return points;
}

}  // namespace noren::config
