#include "proxy/ops/ops_server.hpp"

#include <chrono>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

namespace noren::proxy {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::seconds k_idle{30};
constexpr std::chrono::milliseconds k_drain_look{50};
constexpr std::size_t k_max_connections = 256;

using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

constexpr const char* k_index =
    "noren ops endpoint\n\n"
    "/metrics        Prometheus text\n"
    "/-/healthy      200 while this process works\n"
    "/-/ready        200 while it should get traffic\n"
    "/-/status       what it is doing, as JSON\n"
    "/-/config       the configuration in force\n"
    "/-/drain-wait   answers when a drain is over; at once if there is none\n";

tcp::acceptor bind_to(asio::io_context& io, const config::Endpoint& listen) {
    const bool any = listen.host.empty() || listen.host == "::";
    tcp::endpoint endpoint(
        any ? asio::ip::address(asio::ip::address_v6::any()) : asio::ip::make_address(listen.host),
        listen.port);
    tcp::acceptor acceptor(io);
    boost::system::error_code error;
    acceptor.open(endpoint.protocol(), error);
    if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (error && any) {  // a host without IPv6
        acceptor.close();
        endpoint.address(asio::ip::address_v4::any());
        acceptor.open(endpoint.protocol());
    }
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
        throw boost::system::system_error(error,
                                          "cannot listen on " + config::to_string(listen) + " for ops");
    return acceptor;
}

Response answer(const Request& request, http::status status, std::string_view type, std::string body) {
    Response response(status, request.version());
    response.set(http::field::content_type, beast::string_view(type.data(), type.size()));
    response.set(http::field::cache_control, "no-store");
    response.keep_alive(request.keep_alive());
    response.body() = std::move(body);
    response.prepare_payload();
    return response;
}

}  // namespace

struct OpsServer::State {
    State(asio::io_context& context, const config::Endpoint& listen, OpsHooks h)
        : io(context), acceptor(bind_to(context, listen)), hooks(std::move(h)) {}

    Response respond(const Request& request) const;

    asio::io_context& io;
    tcp::acceptor acceptor;
    OpsHooks hooks;
    std::size_t connections = 0;
    bool stopping = false;
};

Response OpsServer::State::respond(const Request& request) const {
    const std::string_view target(request.target().data(), request.target().size());
    const std::string_view path = target.substr(0, target.find('?'));
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
        Response response = answer(request, http::status::method_not_allowed, "text/plain", "GET only\n");
        response.set(http::field::allow, "GET, HEAD");
        return response;
    }
    if (path == "/metrics")
        return answer(request, http::status::ok, "text/plain; version=0.0.4; charset=utf-8", hooks.metrics());
    if (path == "/-/healthy") return answer(request, http::status::ok, "text/plain", "healthy\n");
    if (path == "/-/ready") {
        const auto status = hooks.ready() ? http::status::ok : http::status::service_unavailable;
        return answer(request, status, "application/json", hooks.ready_json() + "\n");
    }
    if (path == "/-/status")
        return answer(request, http::status::ok, "application/json", hooks.status_json() + "\n");
    if (path == "/-/config")
        return answer(request, http::status::ok, "application/yaml", hooks.config_yaml());
    if (path == "/-/drain-wait") return answer(request, http::status::ok, "text/plain", "drained\n");
    if (path == "/") return answer(request, http::status::ok, "text/plain", k_index);
    return answer(request, http::status::not_found, "text/plain", "not found\n");
}

namespace {

/// True when a drain is over; false when the client left before that.
template <typename State>
asio::awaitable<bool> wait_for_drain(std::shared_ptr<State> state, beast::tcp_stream& stream) {
    asio::steady_timer timer(state->io);
    while (!state->hooks.drained() && !state->stopping) {
        timer.expires_after(k_drain_look);
        co_await timer.async_wait(tuple_awaitable);
        char byte = 0;
        boost::system::error_code error;
        stream.socket().non_blocking(true, error);
        stream.socket().receive(asio::buffer(&byte, 1), tcp::socket::message_peek, error);
        if (error && error != asio::error::would_block) co_return false;
    }
    co_return true;
}

template <typename State>
asio::awaitable<void> serve(std::shared_ptr<State> state, tcp::socket socket) {
    beast::tcp_stream stream(std::move(socket));
    beast::flat_buffer buffer(16 * 1024);
    for (;;) {
        http::request_parser<http::empty_body> parser;
        parser.header_limit(8 * 1024);
        stream.expires_after(k_idle);
        const auto [read_error, read_bytes] =
            co_await http::async_read(stream, buffer, parser, tuple_awaitable);
        if (read_error) break;
        const Request request = parser.release();
        if (request.target().starts_with("/-/drain-wait")) {
            stream.expires_never();
            if (!co_await wait_for_drain(state, stream)) break;
        }
        Response response = state->respond(request);
        stream.expires_after(k_idle);
        if (request.method() == http::verb::head) {
            http::response_serializer<http::string_body> serializer(response);
            const auto [error, bytes] =
                co_await http::async_write_header(stream, serializer, tuple_awaitable);
            if (error) break;
        } else {
            const auto [error, bytes] = co_await http::async_write(stream, response, tuple_awaitable);
            if (error) break;
        }
        if (!response.keep_alive() || state->stopping) break;
    }
    boost::system::error_code ignored;
    stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
    --state->connections;
}

template <typename State>
asio::awaitable<void> accept(std::shared_ptr<State> state) {
    asio::steady_timer pause(state->io);
    while (!state->stopping) {
        tcp::socket socket(state->io);
        const auto [error] = co_await state->acceptor.async_accept(socket, tuple_awaitable);
        if (state->stopping) break;
        if (error) {
            pause.expires_after(std::chrono::milliseconds(50));
            co_await pause.async_wait(tuple_awaitable);
            continue;
        }
        if (state->connections >= k_max_connections) continue;
        ++state->connections;
        auto serving = serve(state, std::move(socket));
        asio::co_spawn(state->io, std::move(serving), asio::detached);
    }
}

}  // namespace

OpsServer::OpsServer(asio::io_context& io, const config::Endpoint& listen, OpsHooks hooks)
    : state_(std::make_shared<State>(io, listen, std::move(hooks))) {}

OpsServer::~OpsServer() {
    stop();
}

void OpsServer::start() {
    auto accepting = accept(state_);
    asio::co_spawn(state_->io, std::move(accepting), asio::detached);
}

void OpsServer::stop() {
    state_->stopping = true;
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
}

std::uint16_t OpsServer::port() const {
    return state_->acceptor.local_endpoint().port();
}

std::string OpsServer::address() const {
    const tcp::endpoint endpoint = state_->acceptor.local_endpoint();
    return config::to_string({endpoint.address().to_string(), endpoint.port(), {}});
}

}  // namespace noren::proxy
