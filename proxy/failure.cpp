#include "proxy/failure.hpp"

#include <array>

namespace noren::proxy {
namespace {

using metrics::Outcome;

struct Entry {
    std::string_view word;
    int status;
    Outcome outcome;
};

/// In the order of Reason.
constexpr std::array<Entry, 17> k_entries = {{
    {"client_closed", 499, Outcome::client_closed},
    {"bad_request", 400, Outcome::bad_request},
    {"head_timeout", 408, Outcome::timeout},
    {"body_timeout", 408, Outcome::timeout},
    {"body_too_large", 413, Outcome::bad_request},
    {"stall_timeout", 408, Outcome::timeout},
    {"queue_full", 429, Outcome::rejected},
    {"queue_timeout", 429, Outcome::rejected},
    {"draining", 503, Outcome::rejected},
    {"total_timeout", 504, Outcome::timeout},
    {"tunnel_timeout", 504, Outcome::timeout},
    {"upstream_connect", 502, Outcome::upstream_error},
    {"upstream_tls", 502, Outcome::upstream_error},
    {"upstream_reset", 502, Outcome::upstream_error},
    {"upstream_timeout", 504, Outcome::timeout},
    {"upstream_protocol", 502, Outcome::upstream_error},
    {"internal_error", 500, Outcome::internal_error},
}};

const Entry& entry_of(Reason reason) {
    return k_entries[static_cast<std::size_t>(reason)];
}

std::string_view phrase_of(int status) {
    switch (status) {
        case 400:
            return "Bad Request";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 413:
            return "Content Too Large";
        case 414:
            return "URI Too Long";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        case 505:
            return "HTTP Version Not Supported";
        default:
            return "Error";
    }
}

/// The error types that official SDKs know.
std::string_view openai_type(int status) {
    if (status == 429) return "rate_limit_error";
    return status < 500 ? "invalid_request_error" : "server_error";
}

std::string_view anthropic_type(int status) {
    if (status == 413) return "request_too_large";
    if (status == 429) return "rate_limit_error";
    if (status == 503) return "overloaded_error";
    if (status == 504) return "timeout_error";
    return status < 500 ? "invalid_request_error" : "api_error";
}

std::string_view tgi_type(int status) {
    if (status == 429 || status == 503) return "overloaded";
    return status < 500 ? "validation" : "generation";
}

std::string quoted(std::string_view text) {
    return "\"" + std::string(text) + "\"";
}

/// detail and reason are fixed texts of ours without a character that JSON would escape.
std::string body_of(const Failure& failure, Dialect dialect) {
    const std::string reason = quoted(word_of(failure.reason));
    const std::string message = quoted("noren: " + std::string(failure.detail));
    switch (dialect) {
        case Dialect::anthropic:
            return R"({"type":"error","error":{"type":)" + quoted(anthropic_type(failure.status)) +
                   R"(,"message":)" + message + "}}";
        case Dialect::tgi:
            return R"({"error":)" + message + R"(,"error_type":)" + quoted(tgi_type(failure.status)) + "}";
        case Dialect::ollama:
            return R"({"error":)" + message + "}";
        case Dialect::openai:
            break;
    }
    return R"({"error":{"message":)" + message + R"(,"type":)" + quoted(openai_type(failure.status)) +
           R"(,"param":null,"code":)" + reason + "}}";
}

}  // namespace

std::string_view word_of(Reason reason) {
    return entry_of(reason).word;
}
metrics::Outcome outcome_of(Reason reason) {
    return entry_of(reason).outcome;
}

Failure make_failure(Reason reason, std::string_view detail, int status) {
    return {reason, status != 0 ? status : entry_of(reason).status, detail, std::nullopt};
}

std::string to_response(const Failure& failure, Dialect dialect, const Reply& reply) {
    const std::string body = body_of(failure, dialect);
    std::string out = "HTTP/1.1 " + std::to_string(failure.status) + " ";
    out.append(phrase_of(failure.status)).append("\r\nContent-Type: application/json\r\nContent-Length: ");
    out.append(std::to_string(body.size())).append("\r\nx-noren-reason: ").append(word_of(failure.reason));
    if (failure.retry_after) out.append("\r\nRetry-After: ").append(std::to_string(*failure.retry_after));
    if (failure.status == 405) out.append("\r\nAllow: ").append(k_allowed_methods);
    out.append("\r\n");
    append_reply_fields(out, reply);
    out.append("\r\n");
    return reply.with_body ? out.append(body) : out;
}

}  // namespace noren::proxy
