#include "tests/sim/connection.hpp"

#include <array>
#include <ctime>
#include <utility>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "tests/sim/answer.hpp"
#include "tests/sim/counting_body.hpp"
#include "tests/sim/dialects/dialect.hpp"
#include "tests/sim/json_text.hpp"
#include "tests/sim/pages.hpp"
#include "tests/sim/peer_watch.hpp"
#include "tests/sim/response_head.hpp"
#include "tests/sim/wire.hpp"

namespace sim {

namespace beast = boost::beast;
namespace http = beast::http;

namespace {

using Parser = http::request_parser<CountingBody>;
using boost::system::error_code;

std::string_view view(beast::string_view text) {
    return {text.data(), text.size()};
}

/// A truth that is finished whatever happens, of a request that is active until it is over.
class Account {
  public:
    /// One whose client has left before its head was read is never active.
    Account(Core& core, Truth begun, bool active) : core_(core), truth_(std::move(begun)), active_(active) {
        truth_.outcome = "cancelled";
        if (active) core_.active();
    }
    ~Account() {
        over();
        core_.finish(std::move(truth_));
    }
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    Truth& truth() { return truth_; }
    void over() {
        if (std::exchange(active_, false)) core_.over();
    }

  private:
    Core& core_;
    Truth truth_;
    bool active_;
};

enum class Body { whole, too_large, malformed, gone };

Body judge(const error_code& error) {
    if (!error) return Body::whole;
    if (error == http::error::body_limit) return Body::too_large;
    if (error == http::error::partial_message || error == http::error::end_of_stream) return Body::gone;
    return error.category() == http::make_error_code(http::error::bad_chunk).category() ? Body::malformed
                                                                                        : Body::gone;
}

Refusal refusal_of(Body body) {
    if (body == Body::too_large) return {413, "Request body too large."};
    return {400, "Invalid HTTP request received."};
}

std::string to_body(const std::optional<Route>& route, const Refusal& refusal) {
    return refusal_body(route ? route->api : Api::chat, refusal);
}

class Connection {
  public:
    Connection(tcp::socket socket, Core& core)
        : core_(core), stream_(std::move(socket)), watch_(stream_.socket(), buffer_) {
        registration_ = core_.connected({.abort = [this] { abort(); }, .look = [this] { look(); }});
    }
    ~Connection() { core_.disconnected(registration_); }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    net::awaitable<void> run() {
        bool reusable = true;
        while (reusable && !core_.stopping())
            reusable = co_await serve_request();
        close_politely(stream_.socket());
    }

  private:
    net::awaitable<bool> serve_request();
    net::awaitable<bool> serve_recorded(Parser& parser, std::string_view path, std::string_view query);
    net::awaitable<bool> answer(Exchange& exchange, Parser& parser, std::string_view path,
                                std::string_view query);
    net::awaitable<bool> answer_api(Exchange& exchange, const Route& route, std::string_view body);
    net::awaitable<bool> answer_early(Exchange& exchange);
    net::awaitable<bool> answer_unread(Exchange& exchange, unsigned status, std::string_view body);
    net::awaitable<bool> serve_page(Parser& parser, std::string_view path);
    net::awaitable<Body> read_body(Parser& parser);
    net::awaitable<void> refuse(unsigned status, std::string_view why);
    net::awaitable<void> linger();
    void abort();
    void look();

    Core& core_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    PeerWatch watch_;
    Exchange* exchange_ = nullptr;  // being answered
    bool aborted_ = false;
    std::list<Core::Peer>::iterator registration_;
};

void Connection::abort() {
    aborted_ = true;
    if (exchange_ != nullptr) {
        exchange_->over();
        exchange_->sleeper.cancel();
    }
    reset(stream_.socket());
}

void Connection::look() {
    if (exchange_ != nullptr && has_left(stream_.socket())) exchange_->over();
}

net::awaitable<bool> Connection::serve_request() {
    Parser parser;
    parser.header_limit(core_.options().max_head);
    parser.body_limit(boost::none);  // judged by read_body(), after scripted early answers
    stream_.expires_after(core_.options().keep_alive);
    const auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, tuple_awaitable);
    stream_.expires_never();
    if (error == http::error::header_limit) {
        co_await refuse(431, "Request header fields too large.");
        co_return false;
    }
    if (judge(error) == Body::malformed) co_await refuse(400, "Invalid HTTP request received.");
    if (error) co_return false;

    const std::string target(view(parser.get().target()));
    const std::string_view path = std::string_view(target).substr(0, target.find('?'));
    const std::string_view query =
        path.size() < target.size() ? std::string_view(target).substr(path.size() + 1) : "";
    const bool api = parser.get().method() == http::verb::post && route_of(path);
    if (api || path.starts_with("/raw/")) co_return co_await serve_recorded(parser, path, query);
    co_return co_await serve_page(parser, path);
}

net::awaitable<bool> Connection::serve_recorded(Parser& parser, std::string_view path,
                                                std::string_view query) {
    const auto header = [&parser](std::string_view name) {
        return view(parser.get()[beast::string_view(name.data(), name.size())]);
    };
    const auto route = route_of(path);
    Account account(core_, core_.begin(header("x-request-id"), route ? name_of(route->api) : "raw"),
                    !has_left(stream_.socket()));
    Sleeper sleeper(stream_.get_executor());
    const Result<Overrides> overrides = read_overrides(header);
    Exchange exchange{.core = core_,
                      .socket = stream_.socket(),
                      .sleeper = sleeper,
                      .truth = account.truth(),
                      .over = [&account] { account.over(); },
                      .overrides = overrides ? *overrides : Overrides{},
                      .fault = core_.next_fault(),
                      .http10 = parser.get().version() == 10,
                      .keep_alive = parser.get().keep_alive()};
    exchange_ = &exchange;
    if (exchange.overrides.fault) exchange.fault = *exchange.overrides.fault;
    account.truth().fault = to_string(exchange.fault);

    bool reusable = false;
    if (exchange.fault.is(Fault::Kind::early)) {
        reusable = co_await answer_early(exchange);
    } else if (!overrides) {
        reusable = co_await answer_unread(exchange, 400, refusal_body(Api::chat, overrides.error()));
    } else {
        reusable = co_await answer(exchange, parser, path, query);
    }
    exchange_ = nullptr;
    if (aborted_) account.truth().outcome = "aborted";
    co_return reusable && !aborted_;
}

net::awaitable<bool> Connection::answer(Exchange& exchange, Parser& parser, std::string_view path,
                                        std::string_view query) {
    Truth& truth = exchange.truth;
    const auto route = route_of(path);
    parser.get().body().keep = route.has_value();
    const Body body = co_await read_body(parser);
    truth.request_bytes = parser.get().body().size;
    truth.request_fnv = parser.get().body().fnv;
    if (body == Body::gone) {
        truth.cancel_seen = Clock::now();
        co_return false;
    }
    const Refusal refusal = refusal_of(body);
    if (body != Body::whole)
        co_return co_await answer_unread(exchange, refusal.status, to_body(route, refusal));
    truth.body_read = Clock::now();
    if (co_await misbehave_before_head(exchange)) co_return false;

    watch_.start([this, &exchange] {
        exchange.truth.cancel_seen = Clock::now();
        exchange.over();
        exchange.sleeper.cancel();
        reset(stream_.socket());
    });
    bool reusable = false;
    if (route) {
        reusable = co_await answer_api(exchange, *route, parser.get().body().bytes);
    } else {
        reusable = co_await answer_raw(exchange, path, query);
    }
    co_await watch_.stop();
    co_return reusable;
}

net::awaitable<bool> Connection::answer_api(Exchange& exchange, const Route& route, std::string_view body) {
    Result<Ask> ask = read_ask(route, body, exchange.overrides, core_.options().ask);
    if (ask) {
        ask->id = exchange.truth.id;
        ask->created = core_.options().created.value_or(std::time(nullptr));
        if (ask->model.empty()) ask->model = core_.options().model;
        if (!core_.fits(*ask, exchange.overrides)) {
            ask =
                Refusal(400, concat("This model's maximum context length is ", core_.options().gpu.kv_tokens,
                                    " tokens. However, you requested ", ask->prompt_tokens, " prompt and ",
                                    ask->output_tokens, " output tokens."));
        }
    }
    if (ask) co_return co_await answer_ask(exchange, *ask);
    const std::string why = refusal_body(route.api, ask.error());
    co_return co_await answer_document(exchange, ask.error().status, why);
}

/// The final answer while the client may still be sending.
net::awaitable<bool> Connection::answer_unread(Exchange& exchange, unsigned status, std::string_view body) {
    exchange.keep_alive = false;
    co_await answer_document(exchange, status, body);
    co_await linger();
    co_return false;
}

net::awaitable<bool> Connection::answer_early(Exchange& exchange) {
    const auto status = static_cast<unsigned>(exchange.fault.at);
    const bool bodiless = status == 204 || status == 304;
    const std::string body =
        bodiless ? "" : refusal_body(Api::chat, Refusal(status, "an early answer, as told to"));
    co_await answer_unread(exchange, status, body);
    exchange.truth.outcome = "faulted";
    co_return false;
}

net::awaitable<bool> Connection::serve_page(Parser& parser, std::string_view path) {
    const Body body = co_await read_body(parser);
    if (body == Body::gone) co_return false;
    if (body != Body::whole) {
        const Refusal refusal = refusal_of(body);
        co_await refuse(refusal.status, refusal.message);
        co_return false;
    }
    const std::string_view method = view(parser.get().method_string());
    const Page page = page_for(core_, method, path, parser.get().body().bytes);
    const std::string extra = page.allow.empty() ? "" : concat("allow: ", page.allow, "\r\n");
    std::string answer = to_string(ResponseHead{.status = page.status,
                                                .type = page.type,
                                                .length = page.body.size(),
                                                .extra = extra,
                                                .close = !parser.get().keep_alive()});
    if (method != "HEAD") answer += page.body;
    const auto [error, bytes] = co_await net::async_write(stream_, net::buffer(answer), tuple_awaitable);
    co_return !error && parser.get().keep_alive();
}

net::awaitable<Body> Connection::read_body(Parser& parser) {
    const std::uint64_t most = core_.options().max_body;
    const bool bounded = parser.get().body().keep;
    const auto announced = parser.content_length();
    if (bounded && announced && *announced > most) co_return Body::too_large;
    if (bounded) parser.body_limit(most);
    if (!parser.is_done() && beast::iequals(parser.get()[http::field::expect], "100-continue")) {
        constexpr std::string_view k_continue = "HTTP/1.1 100 Continue\r\n\r\n";
        const net::const_buffer go_on(k_continue.data(), k_continue.size());
        const auto [error, bytes] = co_await net::async_write(stream_, go_on, tuple_awaitable);
        if (error) co_return Body::gone;
    }
    const auto [error, bytes] = co_await http::async_read(stream_, buffer_, parser, tuple_awaitable);
    co_return judge(error);
}

/// For what is not even a request: plain text, as uvicorn does.
net::awaitable<void> Connection::refuse(unsigned status, std::string_view why) {
    std::string answer = to_string(ResponseHead{
        .status = status, .type = "text/plain; charset=utf-8", .length = why.size(), .close = true});
    answer += why;
    const auto [error, bytes] = co_await net::async_write(stream_, net::buffer(answer), tuple_awaitable);
    if (!error) co_await linger();
}

/// Reads on for a while after the last answer: closing over unread bytes would reset the connection and may
/// take the answer with it (RFC 9112, 9.6).
net::awaitable<void> Connection::linger() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(1));
    std::array<char, 16384> scrap;
    for (;;) {
        const auto [error, bytes] = co_await stream_.async_read_some(net::buffer(scrap), tuple_awaitable);
        if (error) break;
    }
    stream_.expires_never();
}

}  // namespace

net::awaitable<void> serve_connection(tcp::socket socket, Core& core) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    Connection connection(std::move(socket), core);
    co_await connection.run();
}

}  // namespace sim
