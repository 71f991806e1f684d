#include "proxy/ops/ops_server.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "metrics/clock.hpp"
#include "proxy/http/date.hpp"
#include "proxy/http/target.hpp"
#include "proxy/ops/ops_listener.hpp"

namespace noren::proxy {

namespace beast = boost::beast;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using metrics::Clock;

namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds k_drain_look{50};
constexpr std::chrono::milliseconds k_engine_look{2};
constexpr std::chrono::milliseconds k_accept_pause{50};
constexpr std::chrono::seconds k_linger{1};
constexpr int k_accepts_per_turn = 16;
constexpr int k_most_sent_ahead = 8;
constexpr std::uint32_t k_max_head = 8 * 1024;

using Parser = beast_http::request_parser<beast_http::empty_body>;
using Request = beast_http::request<beast_http::empty_body>;
using Response = beast_http::response<beast_http::string_body>;

std::string_view view(beast::string_view text) {
    return {text.data(), text.size()};
}

/// What a client is at. When connections run out, this says who has to go.
enum class Phase : unsigned char {
    asking,     ///< no whole request head yet
    waiting,    ///< for the end of a drain
    answering,  ///< an answer is on its way
    leaving,    ///< had to go
};

struct Client {
    Client(tcp::socket socket, asio::io_context& io) : stream(std::move(socket)), pause(io) {}

    void close() {
        boost::system::error_code ignored;
        stream.socket().close(ignored);
    }
    /// The peer has sent its last byte or reset, even behind bytes nobody has read.
    bool has_left() {
        pollfd look{stream.socket().native_handle(), POLLRDHUP, 0};
        return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }

    beast::tcp_stream stream;
    asio::steady_timer pause;  ///< between two looks at a drain
    Phase phase = Phase::asking;
    int sent_ahead = 0;  ///< requests in a row behind which the next one was here already
};

using Clients = std::list<Client>;

/// What to tell a client whose head could not be read; empty: it has left, nothing to tell.
std::optional<OpsPage> head_refusal(const boost::system::error_code& error) {
    const boost::system::error_code an_http_error = beast_http::error::bad_method;
    if (error.category() != an_http_error.category() || error == beast_http::error::end_of_stream ||
        error == beast_http::error::partial_message)
        return std::nullopt;
    if (error == beast_http::error::header_limit || error == beast_http::error::buffer_overflow)
        return text_page(431, "the request head is longer than 8 KiB");
    return text_page(400, "not a valid HTTP request");
}

bool has_valid_host(const Request& request) {
    const std::size_t hosts = request.count(beast_http::field::host);
    if (hosts == 0) return request.version() < 11;
    return hosts == 1 && http::is_valid_authority(view(request[beast_http::field::host]));
}

std::optional<OpsPage> request_refusal(const Request& request, const http::Target& target) {
    if (target.error || !has_valid_host(request)) return text_page(400, "not a valid HTTP request");
    if (request.method() != beast_http::verb::get && request.method() != beast_http::verb::head)
        return text_page(405, "GET only; changes go through `noren ctl`");
    return std::nullopt;
}

Response to_response(OpsPage&& page, unsigned version, bool keep_alive) {
    Response response(static_cast<beast_http::status>(page.status), version);
    response.set(beast_http::field::content_type, beast::string_view(page.type.data(), page.type.size()));
    response.set(beast_http::field::cache_control, "no-store");
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    response.set(beast_http::field::date, http::imf_fixdate(now));
    if (page.status == 405) response.set(beast_http::field::allow, "GET, HEAD");
    response.body() = std::move(page.body);
    response.prepare_payload();
    response.keep_alive(keep_alive);
    return response;
}

asio::awaitable<bool> send(Client& client, Response& response, bool head_only) {
    beast_http::response_serializer<beast_http::string_body> serializer(response);
    if (head_only) {
        const auto [error, bytes] =
            co_await beast_http::async_write_header(client.stream, serializer, tuple_awaitable);
        co_return !error;
    }
    const auto [error, bytes] = co_await beast_http::async_write(client.stream, serializer, tuple_awaitable);
    co_return !error;
}

/// Closing with unread bytes makes the kernel reset the connection, which can destroy the answer on its way
/// (RFC 9112 9.6): so say that no more comes, and throw away what still does, for a moment.
asio::awaitable<void> close_gently(Client& client) {
    boost::system::error_code failed;
    client.stream.socket().shutdown(tcp::socket::shutdown_send, failed);
    client.stream.expires_after(k_linger);
    std::array<char, 4096> waste;
    for (std::size_t left = 64; left > 0 && !failed; --left) {
        const auto [error, bytes] =
            co_await client.stream.async_read_some(asio::buffer(waste), tuple_awaitable);
        failed = error;
    }
}

}  // namespace

struct OpsServer::State {
    State(asio::io_context& context, const config::Address& listen, OpsHooks h, const OpsLimits& l)
        : io(context), acceptor(listen_for_ops(context, listen)), hooks(std::move(h)), limits(l) {}

    void enter(Phase phase, Clients::iterator client) {
        client->phase = phase;
        clients.splice(clients.end(), clients, client);
    }
    bool make_room();
    bool drain_is_over(Clock::time_point begin_by) const {
        return hooks.draining() ? hooks.drained() : Clock::now() >= begin_by;
    }
    asio::awaitable<bool> wait_for_drain(Client& client, std::chrono::seconds begin_within);
    asio::awaitable<void> wait_for_engine(Client& client);
    asio::awaitable<std::optional<OpsPage>> page_for(Clients::iterator client, const Request& request);
    asio::awaitable<bool> serve_one(Clients::iterator client, beast::flat_buffer& buffer);

    // Static, as each keeps its state alive for as long as it runs.
    static asio::awaitable<void> accept(std::shared_ptr<State> state);
    static void welcome(const std::shared_ptr<State>& state, tcp::socket socket);
    static asio::awaitable<void> serve(std::shared_ptr<State> state, Clients::iterator client);

    asio::io_context& io;
    tcp::acceptor acceptor;
    const OpsHooks hooks;
    const OpsLimits limits;
    Clients clients;  ///< each belongs to its coroutine; in the order in which they entered their phase
    std::size_t drain_waits = 0;
    bool stopping = false;
};

/// Whoever has said nothing for the longest has to go, or else whoever has taken nothing for the longest: a
/// scrape takes milliseconds. False: all are waiting for the end of a drain.
bool OpsServer::State::make_room() {
    if (clients.size() < limits.connections) return true;
    for (const Phase phase : {Phase::asking, Phase::answering}) {
        const auto is_in_phase = [phase](const Client& client) { return client.phase == phase; };
        const auto found = std::find_if(clients.begin(), clients.end(), is_in_phase);
        if (found == clients.end()) continue;
        found->phase = Phase::leaving;  // once is enough
        found->close();
        return true;
    }
    return false;
}

/// True when there is something to answer; false when the client has left.
asio::awaitable<bool> OpsServer::State::wait_for_drain(Client& client, std::chrono::seconds begin_within) {
    const auto begin_by = Clock::now() + begin_within;
    client.stream.expires_never();
    while (!stopping && !drain_is_over(begin_by)) {
        client.pause.expires_after(k_drain_look);
        co_await client.pause.async_wait(tuple_awaitable);
        if (client.has_left()) co_return false;
    }
    co_return true;
}

/// For so long, or shorter if there is nothing more to come; a page without the engine's is a page too.
asio::awaitable<void> OpsServer::State::wait_for_engine(Client& client) {
    const auto give_up = Clock::now() + limits.engine;
    const std::function<bool()> is_there = hooks.look_at_engine();
    while (is_there && !is_there() && !stopping && Clock::now() < give_up) {
        client.pause.expires_after(k_engine_look);
        co_await client.pause.async_wait(tuple_awaitable);
    }
}

asio::awaitable<std::optional<OpsPage>> OpsServer::State::page_for(Clients::iterator client,
                                                                   const Request& request) {
    const http::Target target = http::parse_target(view(request.target()), view(request.method_string()));
    if (auto refusal = request_refusal(request, target)) co_return refusal;
    if (const auto wait = drain_wait_of(target.origin_form)) {
        if (wait->mistake) co_return wait->mistake;
        if (drain_waits >= limits.drain_waits) co_return text_page(503, "too many are waiting already");
        ++drain_waits;
        enter(Phase::waiting, client);
        const bool still_there = co_await wait_for_drain(*client, wait->begin_within);
        enter(Phase::answering, client);
        --drain_waits;
        if (!still_there) co_return std::nullopt;
    }
    if (hooks.look_at_engine && is_metrics_page(target.origin_form)) co_await wait_for_engine(*client);
    co_return page_at(hooks, target.origin_form);
}

/// One request and its answer; true if another may follow.
asio::awaitable<bool> OpsServer::State::serve_one(Clients::iterator client, beast::flat_buffer& buffer) {
    Parser parser;
    parser.header_limit(k_max_head);
    client->stream.expires_after(limits.idle);
    const auto [error, size] =
        co_await beast_http::async_read_header(client->stream, buffer, parser, tuple_awaitable);
    std::optional<OpsPage> page = head_refusal(error);
    if (error && !page) co_return false;
    enter(Phase::answering, client);
    if (!page) page = co_await page_for(client, parser.get());
    if (!page) co_return false;
    // A body is never wanted and so never read: after it the connection cannot be used again. Nor after what
    // was no request: who knows where the next one would begin. Nor for long when the next one is always here
    // before the last one's answer: a scrape costs milliseconds.
    client->sent_ahead = buffer.size() > 0 ? client->sent_ahead + 1 : 0;
    const bool keep_alive = page->status != 400 && !error && parser.is_done() && parser.get().keep_alive() &&
                            client->sent_ahead <= k_most_sent_ahead && !stopping;
    const bool head_only = !error && parser.get().method() == beast_http::verb::head;
    Response response = to_response(std::move(*page), error ? 11 : parser.get().version(), keep_alive);
    client->stream.expires_after(limits.idle);
    const bool sent = co_await send(*client, response, head_only);
    if (sent && !keep_alive) co_await close_gently(*client);
    const bool another = sent && keep_alive;
    co_return another;
}

asio::awaitable<void> OpsServer::State::serve(std::shared_ptr<State> state, Clients::iterator client) {
    struct Leave {
        std::shared_ptr<State> state;
        Clients::iterator client;
        ~Leave() { state->clients.erase(client); }
    };
    const Leave leave{state, client};
    beast::flat_buffer buffer(2 * k_max_head);
    while (co_await state->serve_one(client, buffer)) {
        if (state->stopping) break;
        state->enter(Phase::asking, client);
    }
}

void OpsServer::State::welcome(const std::shared_ptr<State>& state, tcp::socket socket) {
    if (!state->make_room()) return;
    const auto client = state->clients.emplace(state->clients.end(), std::move(socket), state->io);
    auto serving = serve(state, client);
    asio::co_spawn(state->io, std::move(serving), asio::detached);
}

asio::awaitable<void> OpsServer::State::accept(std::shared_ptr<State> state) {
    asio::steady_timer pause(state->io);
    state->acceptor.non_blocking(true);
    while (!state->stopping) {
        tcp::socket socket(state->io);
        const auto [error] = co_await state->acceptor.async_accept(socket, tuple_awaitable);
        if (state->stopping) break;
        if (error) {  // most likely no descriptor is left: some will come back
            pause.expires_after(k_accept_pause);
            co_await pause.async_wait(tuple_awaitable);
            continue;
        }
        // As many as are waiting, up to a bound: with one per turn a probe would wait for an answer to each
        // connection that came before it.
        boost::system::error_code none_left;
        for (int i = 0; !none_left && i < k_accepts_per_turn; ++i) {
            welcome(state, std::move(socket));
            socket = tcp::socket(state->io);
            state->acceptor.accept(socket, none_left);
        }
        if (!none_left) welcome(state, std::move(socket));
    }
}

OpsServer::OpsServer(asio::io_context& io, const config::Address& listen, OpsHooks hooks,
                     const OpsLimits& limits)
    : state_(std::make_shared<State>(io, listen, std::move(hooks), limits)) {}

OpsServer::~OpsServer() {
    stop();
}

void OpsServer::start() {
    auto accepting = State::accept(state_);
    asio::co_spawn(state_->io, std::move(accepting), asio::detached);
}

void OpsServer::stop() {
    if (std::exchange(state_->stopping, true)) return;
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    for (Client& client : state_->clients) {
        client.pause.cancel();
        if (client.phase == Phase::asking) client.close();
    }
}

std::uint16_t OpsServer::port() const {
    return state_->acceptor.local_endpoint().port();
}

std::string OpsServer::address() const {
    const tcp::endpoint endpoint = state_->acceptor.local_endpoint();
    return config::to_string({endpoint.address().to_string(), endpoint.port(), {}});
}

}  // namespace noren::proxy
