#include "proxy/net/socket_file.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <boost/asio/local/stream_protocol.hpp>

namespace noren::proxy::net {
namespace {

/// Non-blocking, as a stopped process with a full backlog is alive and would keep us waiting.
bool nobody_listens(const std::string& path) {
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe < 0) return false;
    const boost::asio::local::stream_protocol::endpoint there(path);
    const bool refused =
        ::connect(probe, there.data(), static_cast<socklen_t>(there.size())) != 0 && errno == ECONNREFUSED;
    ::close(probe);
    return refused;
}

}  // namespace

std::string_view make_room_for_socket(const std::string& path) {
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0) return {};  // bind() says what else may be wrong
    // connect() says "refused" for a plain file too, so the kind is looked at first.
    if (!S_ISSOCK(found.st_mode)) return "something that is no socket is there";
    if (!nobody_listens(path)) return "another process listens there";
    ::unlink(path.c_str());
    return {};
}

SocketFile::SocketFile(std::string path) : path_(std::move(path)) {
    struct stat bound{};
    if (::lstat(path_.c_str(), &bound) != 0) return;
    device_ = bound.st_dev;
    inode_ = bound.st_ino;
}

SocketFile::~SocketFile() {
    struct stat found{};
    if (::lstat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == inode_)
        ::unlink(path_.c_str());
}

}  // namespace noren::proxy::net
