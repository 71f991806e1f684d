#include "proxy/engine_page/page_request.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "proxy/http/forward.hpp"

namespace noren::proxy::engine_page {
namespace {

constexpr std::string_view k_close = "Connection: close\r\n";

/// Says who asks, or how, and nothing of what is asked for.
bool is_about_asker(std::string_view name) {
    constexpr std::array<std::string_view, 24> k_names = {"host",
                                                          "connection",
                                                          "keep-alive",
                                                          "proxy-connection",
                                                          "te",
                                                          "upgrade",
                                                          "http2-settings",
                                                          "content-length",
                                                          "user-agent",
                                                          "from",
                                                          "referer",
                                                          "via",
                                                          "date",
                                                          "forwarded",
                                                          "x-real-ip",
                                                          "x-request-id",
                                                          "x-envoy-attempt-count",
                                                          "x-envoy-expected-rq-timeout-ms",
                                                          "x-prometheus-scrape-timeout-seconds",
                                                          "traceparent",
                                                          "tracestate",
                                                          "baggage",
                                                          "b3",
                                                          "x-cloud-trace-context"};
    const auto begins = [name](std::string_view prefix) {
        return name.size() > prefix.size() && http::same_name(name.substr(0, prefix.size()), prefix);
    };
    return begins("x-forwarded-") || begins("x-b3-") ||
           std::any_of(k_names.begin(), k_names.end(),
                       [&](std::string_view known) { return http::same_name(known, name); });
}

void append_lower(std::string& out, std::string_view text) {
    for (const char c : text)
        out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
}

}  // namespace

PageRequest client_request(const http::RequestHead& head, std::string_view request_id) {
    PageRequest request;
    request.key.append(head.target).append("\n").append(head.authority).append("\n");
    // An option may take away a field that is part of the key.
    head.fields.for_each_of("connection", [&](std::string_view option) {
        if (http::same_name(option, "close") || is_about_asker(option)) return;
        append_lower(request.key, option);
        request.key.append(" taken away\n");
    });
    for (const http::Field& field : head.fields.all()) {
        if (is_about_asker(field.name)) continue;
        append_lower(request.key, field.name);
        request.key.append(":").append(field.value).append("\n");
    }
    request.head = http::upstream_head(head, {}, request_id);
    request.head.insert(request.head.size() - 2, k_close);
    return request;
}

PageRequest own_request(const config::Address& engine, std::string_view path) {
    PageRequest request;
    request.key = "noren";  // of no client: a target begins with a slash
    const std::string host = engine.is_unix() ? "localhost" : config::to_string(engine);
    request.head.append("GET ").append(path).append(" HTTP/1.1\r\nHost: ").append(host);
    request.head.append("\r\nUser-Agent: noren-metrics\r\nAccept: text/plain;version=0.0.4, */*;q=0.1\r\n");
    request.head.append(k_close).append("\r\n");
    return request;
}

}  // namespace noren::proxy::engine_page
