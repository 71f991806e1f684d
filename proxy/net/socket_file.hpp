#pragma once
// The file of a listening Unix socket: what may be removed to make room for it, and when it goes again.

#include <sys/types.h>

#include <string>
#include <string_view>

namespace noren::proxy::net {

/// Makes room for a socket at path. A socket that nobody listens on, left over from a process that did not
/// end well, is removed; whatever else is there is somebody's and stays. Empty: a socket can be bound now;
/// else why not.
std::string_view make_room_for_socket(const std::string& path);

/// Of a socket that has just been bound at path. Goes with its owner, unless another instance has put its own
/// there meanwhile.
class SocketFile {
  public:
    explicit SocketFile(std::string path);
    ~SocketFile();
    SocketFile(const SocketFile&) = delete;
    SocketFile& operator=(const SocketFile&) = delete;

  private:
    const std::string path_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace noren::proxy::net
