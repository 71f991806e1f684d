// Every byte value in every position of a head, on both sides.

#include <string>

#include <catch2/catch.hpp>

#include "tests/unit/proxy/kinds/passage.hpp"

namespace noren::test {
namespace {

const std::string k_next = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

template <typename Take>
int count_taken(const std::string& text, Take&& take) {
    int taken = 0;
    for_each_spoiled(text, [&](const std::string& spoiled) { taken += take(spoiled) ? 1 : 0; });
    return taken;
}

}  // namespace

TEST_CASE("every byte value in every position of a request head") {
    const std::string head =
        "POST /v1/x?a=b HTTP/1.1\r\nHost: a.test:80\r\nX-Name:  v w \r\nContent-Length: 3\r\n\r\n";
    REQUIRE(is_taken_as_read(head + "abc"));
    CHECK(count_taken(head, [](const std::string& text) { return is_taken_as_read(text + "abc" + k_next); }) >
          2000);
}

TEST_CASE("every byte value in every position of a chunked request's head") {
    const std::string head = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:chunked\r\n\r\n";
    REQUIRE(is_taken_as_read(head + "3\r\nabc\r\n0\r\n\r\n"));
    CHECK(count_taken(head, [](const std::string& text) {
              return is_taken_as_read(text + "3\r\nabc\r\n0\r\n\r\n" + k_next);
          }) > 1000);
}

TEST_CASE("every byte value in every position of an answer head") {
    const std::string head =
        "HTTP/1.1 200 Very OK\r\nServer: s\r\nX-Name:  v w \r\nContent-Length: 3\r\n\r\n";
    REQUIRE(is_taken_as_read(head + "abc", "GET"));
    CHECK(count_taken(head, [](const std::string& text) { return is_taken_as_read(text + "abc", "GET"); }) >
          2000);
    CHECK(count_taken(head, [](const std::string& text) { return is_taken_as_read(text, "HEAD"); }) > 2000);
}

TEST_CASE("every byte value in every position of a chunked answer's head") {
    const std::string head = "HTTP/1.1 200 OK\r\nTransfer-Encoding:chunked\r\n\r\n";
    REQUIRE(is_taken_as_read(head + "3\r\nabc\r\n0\r\n\r\n", "GET"));
    CHECK(count_taken(head, [](const std::string& text) {
              return is_taken_as_read(text + "3\r\nabc\r\n0\r\n\r\n", "GET");
          }) > 1000);
}

}  // namespace noren::test
