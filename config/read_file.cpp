#include "config/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <system_error>
#include <utility>

#include "config/document.hpp"

namespace noren::config {

namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return fd_; }

  private:
    int fd_;
};

Mistake mistake(const std::string& path, std::string found) {
    return {path, 0, "", std::move(found), "a readable file"};
}

Mistake system_mistake(const std::string& path, int error) {
    if (error == ENOENT) return mistake(path, std::string(k_no_such_file));
    return mistake(path, "a file that cannot be read (" + std::generic_category().message(error) + ')');
}

}  // namespace

std::variant<std::string, Mistake> read_file(const std::string& path) {
    // O_NONBLOCK so that opening a pipe without a writer does not wait for one.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.get() < 0) return system_mistake(path, errno);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) return system_mistake(path, errno);
    if (S_ISDIR(status.st_mode)) return mistake(path, "a directory");
    if (!S_ISREG(status.st_mode)) return mistake(path, "a pipe, socket or device");

    constexpr std::size_t most = k_max_document + 1;
    std::string text;
    char block[16 * 1024];
    while (text.size() < most) {
        const ssize_t got = ::read(file.get(), block, sizeof block);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return system_mistake(path, errno);
        if (got == 0) break;
        text.append(block, static_cast<std::size_t>(got));
    }
    if (text.size() > most) text.resize(most);
    return text;
}

}  // namespace noren::config
