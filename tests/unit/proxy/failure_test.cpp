#include "proxy/failure.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "metrics/catalogue.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"

namespace noren::proxy {
namespace {

using metrics::Outcome;

struct Expected {
    Reason reason;
    std::string_view word;
    int status;
    Outcome outcome;
};
const std::vector<Expected> k_expected = {
    {Reason::client_closed, "client_closed", 499, Outcome::client_closed},
    {Reason::bad_request, "bad_request", 400, Outcome::bad_request},
    {Reason::head_timeout, "head_timeout", 408, Outcome::timeout},
    {Reason::body_timeout, "body_timeout", 408, Outcome::timeout},
    {Reason::body_too_large, "body_too_large", 413, Outcome::bad_request},
    {Reason::stall_timeout, "stall_timeout", 408, Outcome::timeout},
    {Reason::queue_full, "queue_full", 429, Outcome::rejected},
    {Reason::queue_timeout, "queue_timeout", 429, Outcome::rejected},
    {Reason::draining, "draining", 503, Outcome::rejected},
    {Reason::total_timeout, "total_timeout", 504, Outcome::timeout},
    {Reason::tunnel_timeout, "tunnel_timeout", 504, Outcome::timeout},
    {Reason::upstream_connect, "upstream_connect", 502, Outcome::upstream_error},
    {Reason::upstream_tls, "upstream_tls", 502, Outcome::upstream_error},
    {Reason::upstream_reset, "upstream_reset", 502, Outcome::upstream_error},
    {Reason::upstream_timeout, "upstream_timeout", 504, Outcome::timeout},
    {Reason::upstream_protocol, "upstream_protocol", 502, Outcome::upstream_error},
    {Reason::internal_error, "internal_error", 500, Outcome::internal_error},
};

constexpr std::string_view k_date = "Sun, 06 Nov 1994 08:49:37 GMT";

/// A whole answer, read by our own strict reader.
struct Answer {
    int status = 0;
    std::string reason_phrase, content_type, noren_reason, retry_after, connection, request_id, allow, date;
    std::string body;
};

Answer read_answer(const std::string& text) {
    const std::size_t size = text.find("\r\n\r\n") + 4;
    const std::string head_text = text.substr(0, size);
    const auto parsed = http::parse_response_head(head_text);
    REQUIRE(std::holds_alternative<http::ResponseHead>(parsed));
    const auto& head = std::get<http::ResponseHead>(parsed);
    const auto value = [&](std::string_view name) {
        REQUIRE(head.fields.count(name) <= 1);
        return std::string(head.fields.value(name));
    };
    Answer answer{
        head.status,          std::string(head.reason), value("content-type"), value("x-noren-reason"),
        value("retry-after"), value("connection"),      value("x-request-id"), value("allow"),
        value("date"),        text.substr(size)};
    if (!answer.body.empty()) REQUIRE(value("content-length") == std::to_string(answer.body.size()));
    REQUIRE_FALSE(value("content-length").empty());
    return answer;
}

boost::json::object json_of(const Failure& failure, Dialect dialect) {
    const Answer answer = read_answer(to_response(failure, dialect, {k_date, "id"}));
    CHECK(answer.content_type == "application/json");
    return boost::json::parse(answer.body).as_object();
}

std::string text_at(const boost::json::object& object, std::string_view key) {
    return std::string(object.at(key).as_string());
}

}  // namespace

TEST_CASE("each reason has its word, status and outcome") {
    std::set<std::string_view> words;
    for (const Expected& expected : k_expected) {
        INFO(expected.word);
        CHECK(word_of(expected.reason) == expected.word);
        CHECK(outcome_of(expected.reason) == expected.outcome);
        CHECK(make_failure(expected.reason, "x").status == expected.status);
        CHECK(make_failure(expected.reason, "x", 431).status == 431);
        words.insert(word_of(expected.reason));
    }
    CHECK(words.size() == k_expected.size());
    CHECK(static_cast<std::size_t>(Reason::internal_error) + 1 == k_expected.size());
}

TEST_CASE("the answer to a failure is whole and says why") {
    Failure failure = make_failure(Reason::queue_full, "the engine and the queue are full");
    failure.retry_after = 7;
    const Answer answer = read_answer(to_response(failure, Dialect::openai, {k_date, "req-9"}));
    CHECK(answer.status == 429);
    CHECK(answer.reason_phrase == "Too Many Requests");
    CHECK(answer.noren_reason == "queue_full");
    CHECK(answer.retry_after == "7");
    CHECK(answer.request_id == "req-9");
    CHECK(answer.date == k_date);
    CHECK(answer.connection.empty());
    CHECK(answer.allow.empty());

    const Answer last =
        read_answer(to_response(make_failure(Reason::bad_request, "a gateway opens no tunnels", 405),
                                Dialect::openai, {k_date, {}, false}));
    CHECK(last.status == 405);
    CHECK(last.connection == "close");
    CHECK(last.retry_after.empty());
    CHECK(last.request_id.empty());
    CHECK(last.allow == "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
}

TEST_CASE("the metric of failures knows every reason, and no other") {
    std::set<std::string_view> words;
    for (const Expected& expected : k_expected)
        words.insert(word_of(expected.reason));
    CHECK(words ==
          std::set<std::string_view>(metrics::k_failure_reasons.begin(), metrics::k_failure_reasons.end()));
}

TEST_CASE("an OPTIONS request that asks noren is told what may be sent") {
    const Answer answer = read_answer(options_response({k_date, "req-9"}));
    CHECK(answer.status == 200);
    CHECK(answer.allow == "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    CHECK(answer.date == k_date);
    CHECK(answer.request_id == "req-9");
    CHECK(answer.connection.empty());
    CHECK(answer.body.empty());
    CHECK(read_answer(options_response({k_date, "req-9", false})).connection == "close");
}

TEST_CASE("an HTTP/1.0 client is told when its connection stays open") {
    const Failure failure = make_failure(Reason::upstream_connect, "nobody there");
    const auto connection = [&](bool keep_alive, int client_minor) {
        const Reply reply{k_date, "id", keep_alive, client_minor};
        const std::string options = read_answer(options_response(reply)).connection;
        CHECK(read_answer(to_response(failure, Dialect::openai, reply)).connection == options);
        return options;
    };
    CHECK(connection(true, 1).empty());
    CHECK(connection(true, 0) == "keep-alive");
    CHECK(connection(false, 1) == "close");
    CHECK(connection(false, 0) == "close");
}

TEST_CASE("the answer to HEAD has the head of a body and no body") {
    const Failure failure = make_failure(Reason::upstream_timeout, "silence");
    const std::string with = to_response(failure, Dialect::openai, {k_date, "id"});
    const std::string without = to_response(failure, Dialect::openai, {k_date, "id", true, 1, false});
    CHECK(without == with.substr(0, with.find("\r\n\r\n") + 4));
}

TEST_CASE("OpenAI clients get OpenAI errors") {
    const auto error = [](Reason reason) {
        return json_of(make_failure(reason, "why"), Dialect::openai).at("error").as_object();
    };
    CHECK(text_at(error(Reason::queue_full), "type") == "rate_limit_error");
    CHECK(text_at(error(Reason::queue_full), "code") == "queue_full");
    CHECK(text_at(error(Reason::queue_full), "message") == "noren: why");
    CHECK(error(Reason::queue_full).at("param").is_null());
    CHECK(text_at(error(Reason::bad_request), "type") == "invalid_request_error");
    CHECK(text_at(error(Reason::upstream_connect), "type") == "server_error");
    CHECK(text_at(error(Reason::draining), "type") == "server_error");
}

TEST_CASE("Anthropic clients get Anthropic errors") {
    const auto type = [](Reason reason) {
        const auto body = json_of(make_failure(reason, "why"), Dialect::anthropic);
        CHECK(text_at(body, "type") == "error");
        const auto& error = body.at("error").as_object();
        CHECK(text_at(error, "message") == "noren: why");
        return text_at(error, "type");
    };
    CHECK(type(Reason::queue_full) == "rate_limit_error");
    CHECK(type(Reason::draining) == "overloaded_error");
    CHECK(type(Reason::body_too_large) == "request_too_large");
    CHECK(type(Reason::upstream_timeout) == "timeout_error");
    CHECK(type(Reason::upstream_reset) == "api_error");
    CHECK(type(Reason::bad_request) == "invalid_request_error");
}

TEST_CASE("TGI and Ollama clients get theirs") {
    const auto tgi = [](Reason reason) { return json_of(make_failure(reason, "why"), Dialect::tgi); };
    CHECK(text_at(tgi(Reason::queue_full), "error") == "noren: why");
    CHECK(text_at(tgi(Reason::queue_full), "error_type") == "overloaded");
    CHECK(text_at(tgi(Reason::draining), "error_type") == "overloaded");
    CHECK(text_at(tgi(Reason::bad_request), "error_type") == "validation");
    CHECK(text_at(tgi(Reason::upstream_reset), "error_type") == "generation");
    const auto ollama = json_of(make_failure(Reason::queue_full, "why"), Dialect::ollama);
    CHECK(ollama.size() == 1);
    CHECK(text_at(ollama, "error") == "noren: why");
}

TEST_CASE("every head the reader refuses becomes a valid answer with a phrase of its own") {
    const std::vector<std::string> refused = {"GET / HTTP/2.0\r\n\r\n",
                                              "CONNECT a:1 HTTP/1.1\r\n\r\n",
                                              "GET /\"x HTTP/1.1\r\n\r\n",
                                              "GET / HTTP/1.1\r\n\r\n",
                                              "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
                                              std::string(40, 'A') + " / HTTP/1.1\r\n\r\n",
                                              "GET * HTTP/1.1\r\n\r\n",
                                              "GET / HTTP/1.1\r\n x: y\r\n\r\n",
                                              "GET / HTTP/1.1\r\nx\r\n\r\n",
                                              "GET http://:1/ HTTP/1.1\r\n\r\n",
                                              "G@T / HTTP/1.1\r\n\r\n",
                                              "GET / HTTP/1.1\r\nX: \x01\r\n\r\n"};
    for (const std::string& head : refused) {
        INFO(head);
        const auto parsed = http::parse_request_head(head);
        REQUIRE(std::holds_alternative<http::HeadError>(parsed));
        const auto& error = std::get<http::HeadError>(parsed);
        const Failure failure = make_failure(Reason::bad_request, error.detail, error.status);
        for (const Dialect dialect : {Dialect::openai, Dialect::anthropic, Dialect::tgi, Dialect::ollama}) {
            CHECK_FALSE(json_of(failure, dialect).empty());
            CHECK(read_answer(to_response(failure, dialect, {k_date, {}, false})).reason_phrase != "Error");
        }
    }
}

}  // namespace noren::proxy
