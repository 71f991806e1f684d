#pragma once
// The way to change a running noren: a Unix socket that only its own user and root may use, one JSON line
// each way.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

namespace noren::proxy {

namespace asio = boost::asio;

class ControlSocket {
  public:
    /// Called on the ops thread with a command's name ("reload", "drain", ...); the answer is a JSON object.
    using Handle = std::function<std::string(std::string_view command)>;

    /// Listens at path with mode 0600. A file left over from a crash is replaced, a living instance's never.
    /// Throws boost::system::system_error.
    ControlSocket(asio::io_context& io, const std::string& path, Handle handle);
    ~ControlSocket();

    void start();
    void stop();

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace noren::proxy
