#include "proxy/engine_page/page_request.hpp"

#include <string>
#include <variant>

#include <catch2/catch.hpp>

namespace noren::proxy::engine_page {
namespace {

PageRequest of(const std::string& fields, const std::string& target = "/metrics") {
    const std::string text = "GET " + target + " HTTP/1.1\r\nHost: e:8000\r\n" + fields + "\r\n";
    const auto head = http::parse_request_head(text);
    return client_request(std::get<http::RequestHead>(head), "id-1");
}

bool same(const std::string& one, const std::string& other) {
    return of(one).key == of(other).key;
}

}  // namespace

TEST_CASE("who asks, and how, keeps nobody apart") {
    for (const char* field :
         {"User-Agent: Prometheus/3.0\r\n", "X-Request-Id: 7\r\n", "traceparent: 00-1-2-01\r\n",
          "X-Forwarded-For: 10.0.0.1\r\n", "x-b3-traceid: 1\r\n", "Via: 1.1 x\r\n", "Connection: close\r\n",
          "X-Prometheus-Scrape-Timeout-Seconds: 10\r\n", "Content-Length: 0\r\n",
          "Connection: keep-alive\r\nKeep-Alive: 5\r\n", "Forwarded: for=1\r\n"}) {
        INFO(field);
        CHECK(same(field, ""));
    }
}

TEST_CASE("what might change the answer does") {
    const std::vector<std::string> different = {"",
                                                "Accept: text/plain\r\n",
                                                "Accept: application/openmetrics-text\r\n",
                                                "Accept-Encoding: gzip\r\n",
                                                "Accept: text/plain\r\nAccept-Encoding: gzip\r\n",
                                                "Authorization: Bearer a\r\n",
                                                "Authorization: Bearer b\r\n",
                                                "Cookie: a=b\r\n",
                                                "If-None-Match: \"x\"\r\n",
                                                "Range: bytes=0-9\r\n",
                                                "X-Anything: else\r\n",
                                                "Accept: text/plain\r\nConnection: Accept\r\n",
                                                "Cookie: a=b\r\nConnection: close, cookie\r\n",
                                                "x-b3-: \r\n"};
    for (std::size_t i = 0; i < different.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            INFO(different[i] << different[j]);
            CHECK_FALSE(same(different[i], different[j]));
        }
    CHECK(same("ACCEPT: text/plain\r\n", "accept:  text/plain \r\n"));
    CHECK(of("").key != of("", "/metrics?name[]=x").key);
}

TEST_CASE("it goes to the engine as any other request, on a connection of its own") {
    CHECK(of("Accept: text/plain\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\n").head ==
          "GET /metrics HTTP/1.1\r\nHost: e:8000\r\nAccept: text/plain\r\nVia: 1.1 noren\r\n"
          "x-request-id: id-1\r\nConnection: close\r\n\r\n");
}

TEST_CASE("noren's own request") {
    const PageRequest own = own_request({"127.0.0.1", 8000, {}}, "/prometheus/metrics");
    CHECK(own.head ==
          "GET /prometheus/metrics HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nUser-Agent: noren-metrics\r\n"
          "Accept: text/plain;version=0.0.4, */*;q=0.1\r\nConnection: close\r\n\r\n");
    CHECK(own_request({"", 0, "/run/e.sock"}, "/m").head.find("Host: localhost\r\n") != std::string::npos);
    CHECK(own.key != of("").key);
}

}  // namespace noren::proxy::engine_page
