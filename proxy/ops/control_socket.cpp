#include "proxy/ops/control_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/json.hpp>

#include "proxy/net/socket_file.hpp"
#include "proxy/ops/json_text.hpp"

namespace noren::proxy {
namespace {

using asio::local::stream_protocol;
using boost::system::error_code;

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t k_max_line = 64 * 1024;
constexpr int k_backlog = 16;
constexpr mode_t k_mode = S_IRUSR | S_IWUSR;
constexpr std::chrono::milliseconds k_accept_pause{50};

[[noreturn]] void fail(const error_code& error, const std::string& path) {
    throw boost::system::system_error(error, "cannot listen on the control socket " + path);
}

stream_protocol::acceptor bind_to(asio::io_context& io, const std::string& path) {
    stream_protocol::endpoint endpoint;
    if (path.size() > endpoint.capacity() - offsetof(sockaddr_un, sun_path) - 1)
        fail(asio::error::name_too_long, path);
    endpoint.path(path);
    std::error_code no_folder;  // bind() then says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), no_folder);
    if (const auto why = net::make_room_for_socket(path); !why.empty())
        fail(asio::error::address_in_use, path + ": " + std::string(why));
    stream_protocol::acceptor acceptor(io);
    error_code error;
    acceptor.open(stream_protocol(), error);
    // On Linux the file takes the descriptor's mode. So it is closed to others from its first moment on,
    // without touching the umask, which belongs to all threads.
    if (!error && ::fchmod(acceptor.native_handle(), k_mode) != 0)
        error.assign(errno, boost::system::system_category());
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(k_backlog, error);
    if (error) fail(error, path);
    return acceptor;
}

bool may_command(stream_protocol::socket& socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == ::geteuid();
}

std::string refusal(std::string_view message) {
    return boost::json::serialize(boost::json::object{{"ok", false}, {"message", json_text(message)}});
}

/// Empty: not the line that was expected.
std::string command_of(std::string_view line) {
    error_code error;
    const auto value = boost::json::parse(boost::json::string_view(line.data(), line.size()), error);
    if (error || !value.is_object()) return {};
    const auto* command = value.as_object().if_contains("command");
    return command && command->is_string() ? std::string(command->as_string()) : std::string();
}

std::string reply_to(std::string_view line, const ControlSocket::Handle& handle) {
    const std::string command = command_of(line);
    if (command.empty()) return refusal("expected one line of JSON: {\"command\": \"status\"}");
    try {
        return handle(command);
    } catch (const std::exception& problem) {
        return refusal(problem.what());
    }
}

}  // namespace

struct ControlSocket::State {
    State(asio::io_context& context, const std::string& path, Handle h, std::chrono::milliseconds wait)
        : io(context),
          acceptor(bind_to(context, path)),
          file(std::in_place, path),
          handle(std::move(h)),
          patience(wait) {}

    asio::io_context& io;
    stream_protocol::acceptor acceptor;
    std::optional<net::SocketFile> file;
    const Handle handle;
    const std::chrono::milliseconds patience;
    bool stopping = false;
};

namespace {

template <typename State>
asio::awaitable<void> serve(std::shared_ptr<State> state, std::shared_ptr<stream_protocol::socket> socket) {
    // A client that says nothing, or takes nothing, must not stay for ever.
    asio::steady_timer patience(state->io, state->patience);
    patience.async_wait([socket](const error_code& error) {
        error_code ignored;
        if (!error) socket->close(ignored);
    });
    std::string text;
    const auto [error, size] = co_await asio::async_read_until(
        *socket, asio::dynamic_buffer(text, k_max_line), '\n', tuple_awaitable);
    // The end of the input ends a line as well: `printf '{...}' | nc -U` sends no line end.
    const bool whole = !error || (error == asio::error::eof && !text.empty());
    const bool too_long = error == asio::error::not_found;
    if (!whole && !too_long) co_return;
    std::string reply;
    if (!may_command(*socket)) {
        reply = refusal("only the user that runs noren, and root, may use the control socket");
    } else if (too_long) {
        reply = refusal("the line is longer than 64 KiB");
    } else {
        reply = reply_to(std::string_view(text).substr(0, text.find('\n')), state->handle);
    }
    reply.push_back('\n');
    co_await asio::async_write(*socket, asio::buffer(reply), tuple_awaitable);
    patience.cancel();
}

template <typename State>
asio::awaitable<void> accept(std::shared_ptr<State> state) {
    asio::steady_timer pause(state->io);
    while (!state->stopping) {
        auto socket = std::make_shared<stream_protocol::socket>(state->io);
        const auto [error] = co_await state->acceptor.async_accept(*socket, tuple_awaitable);
        if (state->stopping) co_return;
        if (error) {  // most likely no descriptor is left: some will come back
            pause.expires_after(k_accept_pause);
            co_await pause.async_wait(tuple_awaitable);
            continue;
        }
        auto serving = serve(state, std::move(socket));
        asio::co_spawn(state->io, std::move(serving), asio::detached);
    }
}

}  // namespace

ControlSocket::ControlSocket(asio::io_context& io, const std::string& path, Handle handle,
                             std::chrono::milliseconds patience)
    : state_(std::make_shared<State>(io, path, std::move(handle), patience)) {}

ControlSocket::~ControlSocket() {
    stop();
}

void ControlSocket::start() {
    auto accepting = accept(state_);
    asio::co_spawn(state_->io, std::move(accepting), asio::detached);
}

void ControlSocket::stop() {
    if (std::exchange(state_->stopping, true)) return;
    state_->file.reset();
    error_code ignored;
    state_->acceptor.close(ignored);
}

}  // namespace noren::proxy
