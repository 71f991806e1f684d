#include "proxy/engine_page/page_assembly.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace noren::proxy::engine_page {
namespace {

constexpr std::size_t k_most = 1'000;

/// In pieces of that many bytes, up to the first outcome; then a close.
Outcome assembled(const std::string& answer, std::size_t piece, std::size_t most = k_most,
                  bool orderly = true) {
    PageAssembly page(most);
    for (std::size_t at = 0; at < answer.size(); at += piece) {
        auto outcome = page.add(std::string_view(answer).substr(at, piece));
        if (outcome) return *std::move(outcome);
    }
    return page.at_close(orderly);
}

template <typename Check>
void in_all_pieces(const std::string& answer, Check check) {
    for (std::size_t piece = 1; piece <= answer.size(); ++piece)
        check(assembled(answer, piece));
}

const std::string k_page = "tgi_queue_size 1\ntgi_batch_current_size 2\n";

}  // namespace

TEST_CASE("a page is the same in whatever framing and pieces it comes") {
    const std::string type = "Content-Type: text/plain; version=0.0.4\r\n";
    const std::string length = "HTTP/1.1 200 OK\r\n" + type + "Content-Length: 42\r\n\r\n" + k_page;
    const std::string chunked = "HTTP/1.1 200 OK\r\n" + type + "Transfer-Encoding: chunked\r\n\r\n11\r\n" +
                                k_page.substr(0, 17) + "\r\n19;x=y\r\n" + k_page.substr(17) +
                                "\r\n0\r\nX-Trailer: t\r\n\r\n";
    const std::string until_close = "HTTP/1.0 200 OK\r\n" + type + "\r\n" + k_page;
    const std::string behind_interims =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + length;
    for (const std::string& answer : {length, chunked, until_close, behind_interims}) {
        in_all_pieces(answer, [&](const Outcome& outcome) {
            REQUIRE(outcome.ending == Ending::whole);
            REQUIRE(outcome.page->body == k_page);
            CHECK(outcome.page->head.status == 200);
            CHECK(outcome.page->head.fields.value("content-type") == "text/plain; version=0.0.4");
            CHECK(outcome.page->framing.kind == http::BodyKind::length);
            CHECK(outcome.page->framing.length == k_page.size());
        });
    }
}

TEST_CASE("other statuses are pages too; those without a body have none") {
    in_all_pieces("HTTP/1.1 503 Unavailable\r\nContent-Length: 4\r\n\r\nwait", [](const Outcome& outcome) {
        REQUIRE(outcome.page);
        CHECK(outcome.page->head.status == 503);
        CHECK(outcome.page->head.reason == "Unavailable");
        CHECK(outcome.page->body == "wait");
    });
    in_all_pieces("HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", [](const Outcome& outcome) {
        REQUIRE(outcome.page);
        CHECK(outcome.page->framing.kind == http::BodyKind::none);
        CHECK(outcome.page->body.empty());
    });
    CHECK(assembled("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 9).page->body.empty());
}

TEST_CASE("the request id is left out, the rest of the head stays") {
    const Outcome outcome = assembled(
        "HTTP/1.1 200 OK\r\nServer: uvicorn\r\nX-Request-Id: a\r\nDate: d\r\nContent-Length: 0\r\n\r\n", 7);
    REQUIRE(outcome.page);
    CHECK_FALSE(outcome.page->head.fields.has("x-request-id"));
    CHECK(outcome.page->head.fields.all().size() == 3);
    CHECK(outcome.page->head.fields.value("server") == "uvicorn");
}

TEST_CASE("a page that is too large is given up, announced or not") {
    const auto ending = [](const std::string& answer, std::size_t most) {
        return assembled(answer, 5, most).ending;
    };
    const std::string length = "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" + k_page;
    CHECK(ending(length, 42) == Ending::whole);
    CHECK(ending(length, 41) == Ending::too_large);
    CHECK(ending("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", 41) == Ending::too_large);
    const std::string chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2a\r\n" + k_page + "\r\n0\r\n\r\n";
    CHECK(ending(chunked, 42) == Ending::whole);
    CHECK(ending(chunked, 41) == Ending::too_large);
    CHECK(ending("HTTP/1.1 200 OK\r\n\r\n" + k_page, 41) == Ending::too_large);
}

TEST_CASE("what is cut is broken, never whole") {
    const std::string length = "HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" + k_page;
    const std::string chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2a\r\n" + k_page + "\r\n0\r\n\r\n";
    for (const std::string& answer : {length, chunked}) {
        for (std::size_t size = 0; size < answer.size(); ++size) {
            const Outcome outcome = assembled(answer.substr(0, size), 8);
            REQUIRE(outcome.ending == Ending::broken);
            REQUIRE_FALSE(outcome.page);
            REQUIRE_FALSE(outcome.detail.empty());
        }
    }
    CHECK(assembled("HTTP/1.1 200 OK\r\n\r\nhalf", 8, k_most, false).ending == Ending::broken);
}

TEST_CASE("what is no clear answer is malformed") {
    std::string many_interims;
    for (int i = 0; i < 17; ++i)
        many_interims += "HTTP/1.1 102 Processing\r\n\r\n";
    for (const std::string& answer :
         {std::string("SSH-2.0-OpenSSH\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nA b\r\n\r\n"),
          std::string("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), many_interims}) {
        in_all_pieces(answer, [&](const Outcome& outcome) {
            INFO(answer);
            REQUIRE(outcome.ending == Ending::malformed);
            REQUIRE_FALSE(outcome.detail.empty());
        });
    }
}

}  // namespace noren::proxy::engine_page
