#include "proxy/ops/control_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
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

#include "proxy/net/socket_file.hpp"
#include "proxy/ops/control_protocol.hpp"

namespace noren::proxy {
namespace {

using asio::local::stream_protocol;
using boost::system::error_code;

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr int k_backlog = 16;
constexpr mode_t k_mode = S_IRUSR | S_IWUSR;
constexpr std::chrono::milliseconds k_accept_pause{50};

std::unique_ptr<net::SocketFile> listen_at(const std::string& path) {
    std::error_code no_folder;  // SocketFile then says what is wrong
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), no_folder);
    return std::make_unique<net::SocketFile>(path, k_mode, k_backlog,
                                             "cannot listen on the control socket " + path);
}

bool may_command(stream_protocol::socket& socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace

struct ControlSocket::State {
    State(asio::io_context& context, const std::string& path, Handle h, std::chrono::milliseconds wait)
        : io(context),
          file(listen_at(path)),
          acceptor(context, stream_protocol(), file->take().release()),
          handle(std::move(h)),
          patience(wait) {}

    // Static, as each keeps its state alive for as long as it runs.
    static asio::awaitable<void> accept(std::shared_ptr<State> state);
    static asio::awaitable<void> serve(std::shared_ptr<State> state,
                                       std::shared_ptr<stream_protocol::socket> socket);

    asio::io_context& io;
    std::unique_ptr<net::SocketFile> file;
    stream_protocol::acceptor acceptor;
    const Handle handle;
    const std::chrono::milliseconds patience;
    bool stopping = false;
};

asio::awaitable<void> ControlSocket::State::serve(std::shared_ptr<State> state,
                                                  std::shared_ptr<stream_protocol::socket> socket) {
    // A client that says nothing, or takes nothing, must not stay for ever.
    asio::steady_timer patience(state->io, state->patience);
    patience.async_wait([socket](const error_code& error) {
        error_code ignored;
        if (!error) socket->close(ignored);
    });
    std::string text;
    const auto [error, size] = co_await asio::async_read_until(
        *socket, asio::dynamic_buffer(text, k_max_control_line), '\n', tuple_awaitable);
    // The end of the input ends a line as well: `printf '{...}' | nc -U` sends no line end.
    const bool whole = !error || (error == asio::error::eof && !text.empty());
    const bool too_long = error == asio::error::not_found;
    if (!whole && !too_long) co_return;
    std::string reply;
    if (!may_command(*socket)) {
        reply = control_answer(false, "only the user that runs noren, and root, may use the control socket") +
                "\n";
    } else if (too_long) {
        reply = control_answer(false, "the line is longer than 64 KiB") + "\n";
    } else {
        reply = answer_control(text, state->handle);
    }
    co_await asio::async_write(*socket, asio::buffer(reply), tuple_awaitable);
    patience.cancel();
}

asio::awaitable<void> ControlSocket::State::accept(std::shared_ptr<State> state) {
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

ControlSocket::ControlSocket(asio::io_context& io, const std::string& path, Handle handle,
                             std::chrono::milliseconds patience)
    : state_(std::make_shared<State>(io, path, std::move(handle), patience)) {}

ControlSocket::~ControlSocket() {
    stop();
}

void ControlSocket::start() {
    auto accepting = State::accept(state_);
    asio::co_spawn(state_->io, std::move(accepting), asio::detached);
}

void ControlSocket::stop() {
    if (std::exchange(state_->stopping, true)) return;
    state_->file.reset();
    error_code ignored;
    state_->acceptor.close(ignored);
}

}  // namespace noren::proxy
