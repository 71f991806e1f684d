#pragma once
// The file of a listening Unix socket: what may be removed to make room for it, and when it goes again.

#include <string>
#include <utility>

#include "proxy/net/descriptor.hpp"

namespace noren::proxy::net {

/// A Unix socket that listens at path, and its file. A socket that nobody listens on, left over from a
/// process that did not end well, is replaced; whatever else is there is somebody's and stays. Of several
/// that start at once on one path exactly one gets it: from the look at what is there until it listens, each
/// holds a lock on the folder, which leaves nothing behind.
class SocketFile {
  public:
    /// mode: of the file, whatever the umask; nobody gets in before it is set. cannot: the words before the
    /// reason, with the path. Throws boost::system::system_error.
    SocketFile(std::string path, unsigned mode, int backlog, const std::string& cannot);
    /// The file goes, unless another instance has put its own there meanwhile.
    ~SocketFile();
    SocketFile(const SocketFile&) = delete;
    SocketFile& operator=(const SocketFile&) = delete;

    /// The listening descriptor, non-blocking; once.
    Descriptor take() { return std::move(listening_); }

  private:
    bool is_ours() const;
    void remove();

    const std::string path_;
    Descriptor listening_;
    Descriptor file_;  ///< while it is open, no other file can get the inode's number
};

}  // namespace noren::proxy::net
