#include "proxy/net/socket_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/system/system_error.hpp>

namespace noren::proxy::net {
namespace {

using namespace std::chrono_literals;

/// How long another starter may take between its look and its listen(): microseconds, if it is not stopped.
constexpr auto k_lock_patience = 1s;
constexpr auto k_lock_pause = 1ms;

[[noreturn]] void fail(int error, const std::string& what) {
    throw boost::system::system_error(error, boost::system::system_category(), what);
}

Descriptor new_socket() {
    return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
}

bool lock_now(int folder) {
    return ::flock(folder, LOCK_EX | LOCK_NB) == 0;
}

/// Held by whoever is about to change what is at path. Whoever may read the folder can keep others from
/// locking it, but not from starting: after a while it goes on without.
class FolderLock {
  public:
    explicit FolderLock(const std::string& path) {
        const auto folder = std::filesystem::path(path).parent_path();
        folder_ =
            Descriptor(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        const auto give_up = std::chrono::steady_clock::now() + k_lock_patience;
        while (folder_.is_open() && !lock_now(folder_.number()) && std::chrono::steady_clock::now() < give_up)
            std::this_thread::sleep_for(k_lock_pause);
    }

  private:
    Descriptor folder_;  // closing it gives the lock back
};

/// Non-blocking, as a stopped process with a full backlog is alive and would keep us waiting.
bool nobody_listens(const std::string& path) {
    const Descriptor probe = new_socket();
    const sockaddr_un there = address_of(path);
    return probe.is_open() &&
           ::connect(probe.number(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0 &&
           errno == ECONNREFUSED;
}

/// Empty: a socket can be bound now; else why not.
std::string_view make_room(const std::string& path) {
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0) return {};  // bind() says what else may be wrong
    // connect() says "refused" for a plain file too, so the kind is looked at first.
    if (!S_ISSOCK(found.st_mode)) return "something that is no socket is there";
    if (!nobody_listens(path)) return "another process listens there";
    ::unlink(path.c_str());
    return {};
}

}  // namespace

SocketFile::SocketFile(std::string path, unsigned mode, int backlog, const std::string& cannot)
    : path_(std::move(path)) {
    if (path_.size() >= sizeof(sockaddr_un::sun_path)) fail(ENAMETOOLONG, cannot);
    const FolderLock lock(path_);
    if (const auto why = make_room(path_); !why.empty()) fail(EADDRINUSE, cannot + ": " + std::string(why));
    Descriptor bound = new_socket();
    if (!bound.is_open()) fail(errno, cannot);
    // On Linux the file takes the descriptor's mode, less the umask: it is never open to more than may come
    // in.
    const sockaddr_un here = address_of(path_);
    if (::fchmod(bound.number(), mode) != 0 ||
        ::bind(bound.number(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0)
        fail(errno, cannot);
    listening_ = std::move(bound);
    file_ = Descriptor(::open(path_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!file_.is_open()) fail(errno, cannot);
    // The umask belongs to all threads and stays as it is, so what it took is given back.
    int error = 0;
    if (::chmod(path_.c_str(), mode) != 0 || ::listen(listening_.number(), backlog) != 0) {
        error = errno;
    } else if (!is_ours()) {
        error = EADDRINUSE;
    }
    if (error == 0) return;
    remove();
    fail(error, cannot);
}

bool SocketFile::is_ours() const {
    struct stat ours{}, there{};
    return ::fstat(file_.number(), &ours) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void SocketFile::remove() {
    if (is_ours()) ::unlink(path_.c_str());
}

SocketFile::~SocketFile() {
    const FolderLock lock(path_);
    remove();
}

}  // namespace noren::proxy::net
