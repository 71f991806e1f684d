#include "proxy/ops/control_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
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
#include <boost/json.hpp>

namespace noren::proxy {
namespace {

using asio::local::stream_protocol;

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t k_max_line = 64 * 1024;
constexpr std::chrono::seconds k_patience{10};

/// Nobody answers: left over from a process that did not end well.
void remove_stale(const std::string& path) {
    asio::io_context io;
    stream_protocol::socket probe(io);
    boost::system::error_code error;
    probe.connect(stream_protocol::endpoint(path), error);
    if (error == asio::error::connection_refused) ::unlink(path.c_str());
}

stream_protocol::acceptor bind_to(asio::io_context& io, const std::string& path) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    remove_stale(path);
    stream_protocol::acceptor acceptor(io);
    acceptor.open();
    const mode_t before = ::umask(0177);  // 0600 from the first moment on
    boost::system::error_code error;
    acceptor.bind(stream_protocol::endpoint(path), error);
    ::umask(before);
    if (!error) acceptor.listen(16, error);
    if (error) throw boost::system::system_error(error, "cannot listen on the control socket " + path);
    return acceptor;
}

bool may_command(stream_protocol::socket& socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == ::geteuid();
}

std::string refusal(std::string_view message) {
    return boost::json::serialize(boost::json::object{{"ok", false}, {"message", message}});
}

std::string command_of(const std::string& line) {
    boost::system::error_code error;
    const auto value = boost::json::parse(line, error);
    if (error || !value.is_object()) return {};
    const auto* command = value.as_object().if_contains("command");
    return command && command->is_string() ? std::string(command->as_string()) : std::string();
}

}  // namespace

struct ControlSocket::State {
    State(asio::io_context& context, std::string p, Handle h)
        : io(context), path(std::move(p)), acceptor(bind_to(context, path)), handle(std::move(h)) {}

    asio::io_context& io;
    std::string path;
    stream_protocol::acceptor acceptor;
    Handle handle;
    bool stopping = false;
};

namespace {

template <typename State>
asio::awaitable<void> serve(std::shared_ptr<State> state, std::shared_ptr<stream_protocol::socket> socket) {
    // A client that says nothing must not stay for ever.
    asio::steady_timer patience(state->io, k_patience);
    patience.async_wait([socket](const boost::system::error_code& error) {
        boost::system::error_code ignored;
        if (!error) socket->close(ignored);
    });
    std::string line;
    const auto [error, size] = co_await asio::async_read_until(
        *socket, asio::dynamic_buffer(line, k_max_line), '\n', tuple_awaitable);
    patience.cancel();
    if (error && error != asio::error::not_found) co_return;
    std::string reply;
    if (!may_command(*socket)) {
        reply = refusal("only the user that runs noren, and root, may use the control socket");
    } else if (const std::string command = command_of(line); error || command.empty()) {
        reply = refusal("expected one line of JSON: {\"command\": \"status\"}");
    } else {
        reply = state->handle(command);
    }
    reply.push_back('\n');
    co_await asio::async_write(*socket, asio::buffer(reply), tuple_awaitable);
}

template <typename State>
asio::awaitable<void> accept(std::shared_ptr<State> state) {
    while (!state->stopping) {
        auto socket = std::make_shared<stream_protocol::socket>(state->io);
        const auto [error] = co_await state->acceptor.async_accept(*socket, tuple_awaitable);
        if (state->stopping || error) co_return;
        auto serving = serve(state, std::move(socket));
        asio::co_spawn(state->io, std::move(serving), asio::detached);
    }
}

}  // namespace

ControlSocket::ControlSocket(asio::io_context& io, const std::string& path, Handle handle)
    : state_(std::make_shared<State>(io, path, std::move(handle))) {}

ControlSocket::~ControlSocket() {
    stop();
}

void ControlSocket::start() {
    auto accepting = accept(state_);
    asio::co_spawn(state_->io, std::move(accepting), asio::detached);
}

void ControlSocket::stop() {
    if (std::exchange(state_->stopping, true)) return;
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    ::unlink(state_->path.c_str());
}

}  // namespace noren::proxy
