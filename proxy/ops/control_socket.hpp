#pragma once
// The way to change a running noren: a Unix socket for its own user and root, one JSON line each way.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

namespace noren::proxy {

namespace asio = boost::asio;

/// One thread: the one that runs io.
class ControlSocket {
  public:
    /// Called on the ops thread with a command ("reload", "limit 48"); the answer is a JSON object.
    using Handle = std::function<std::string(std::string_view command)>;

    /// Listens at path with mode 0600; makes the folder if it can. A socket left over from a crash is
    /// replaced; a living instance's never, nor a file that is no socket. patience: for a client to say its
    /// line and take the answer. Throws boost::system::system_error with the path in its text.
    ControlSocket(asio::io_context& io, const std::string& path, Handle handle,
                  std::chrono::milliseconds patience = std::chrono::seconds(10));
    ~ControlSocket();

    void start();
    /// Takes no more connections and removes the socket file, if it is still this one's.
    void stop();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace noren::proxy
