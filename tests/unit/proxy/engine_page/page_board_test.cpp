#include "proxy/engine_page/page_board.hpp"

#include <memory>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::proxy::engine_page {
namespace {

using namespace std::chrono_literals;

struct Waiter final : net::Notifiable {
    void post() noexcept override { ++posts; }
    int posts = 0;
};

Outcome page(int status = 200) {
    auto whole = std::make_shared<Page>();
    whole->head.status = status;
    return {Ending::whole, {}, std::move(whole)};
}

struct Board {
    Board() {
        board.set_fetcher([this](const std::shared_ptr<PageFetch>& fetch) { started.push_back(fetch); });
    }
    PageBoard::Share ask(const std::string& key, std::chrono::milliseconds at,
                         std::chrono::milliseconds window = 100ms) {
        return board.ask({key, "GET " + key}, {window, 50ms, 1'000, nullptr}, t0 + at);
    }
    const TimePoint t0 = metrics::Clock::now();
    PageBoard board;
    std::vector<std::shared_ptr<PageFetch>> started;
};

}  // namespace

TEST_CASE("who asks while a fetch runs shares it, and is told once") {
    Board b;
    const auto first = b.ask("/m", 0ms);
    const auto second = b.ask("/m", 20ms);
    REQUIRE(b.started.size() == 1);
    CHECK(first.fetch == second.fetch);
    CHECK_FALSE(first.joined);
    CHECK(second.joined);
    CHECK_FALSE(first.fetch->outcome());
    const auto one = std::make_shared<Waiter>();
    const auto other = std::make_shared<Waiter>();
    first.fetch->tell(one);
    first.fetch->tell(other);
    CHECK(one->posts == 0);
    b.started[0]->end(page());
    CHECK(one->posts == 1);
    CHECK(other->posts == 1);
    CHECK(first.fetch->outcome()->ending == Ending::whole);
    const auto late = std::make_shared<Waiter>();
    first.fetch->tell(late);  // there is nothing to wait for
    CHECK(late->posts == 0);
}

TEST_CASE("a page is shared until its window, counted from the beginning of its fetch, is over") {
    Board b;
    const auto first = b.ask("/m", 0ms);
    b.started[0]->end(page());
    CHECK(b.ask("/m", 99ms).fetch == first.fetch);
    CHECK(b.ask("/m", 99ms).joined);
    const auto next = b.ask("/m", 100ms);
    CHECK(next.fetch != first.fetch);
    CHECK_FALSE(next.joined);
    CHECK(b.started.size() == 2);
}

TEST_CASE("without a window only a fetch that runs is shared") {
    Board b;
    const auto first = b.ask("/m", 0ms, 0ms);
    CHECK(b.ask("/m", 0ms, 0ms).fetch == first.fetch);
    b.started[0]->end(page());
    CHECK(b.ask("/m", 0ms, 0ms).fetch != first.fetch);
}

TEST_CASE("what went wrong is told to those who waited, and to nobody after them") {
    Board b;
    for (const Outcome& bad : {Outcome{Ending::late, "d", nullptr}, Outcome{Ending::too_large, "d", nullptr},
                               page(503), page(404), page(304)}) {
        const std::size_t before = b.started.size();
        const auto first = b.ask("/m", 0ms);
        REQUIRE(b.started.size() == before + 1);
        b.started.back()->end(bad);
        CHECK(first.fetch->outcome()->ending == bad.ending);
        CHECK(b.ask("/m", 1ms).fetch != first.fetch);
        b.started.back()->end(bad);
    }
}

TEST_CASE("different requests do not share") {
    Board b;
    const auto plain = b.ask("/m\naccept:text/plain\n", 0ms);
    const auto open = b.ask("/m\naccept:application/openmetrics-text\n", 0ms);
    CHECK(plain.fetch != open.fetch);
    CHECK(b.started.size() == 2);
    CHECK(b.started[1]->request.head == "GET /m\naccept:application/openmetrics-text\n");
}

TEST_CASE("the board has few places; who finds none asks the engine alone") {
    Board b;
    for (std::size_t i = 0; i < PageBoard::k_most_pages; ++i)
        CHECK(b.ask("/m?" + std::to_string(i), 0ms).fetch);
    CHECK_FALSE(b.ask("/one-more", 0ms).fetch);
    CHECK(b.ask("/m?0", 0ms).joined);
    b.board.forget(*b.started[3]);
    CHECK(b.ask("/one-more", 0ms).fetch);
}

TEST_CASE("forgetting a fetch leaves the one that took its place") {
    Board b;
    const auto old = b.ask("/m", 0ms);
    b.started[0]->end(page());
    const auto next = b.ask("/m", 100ms);
    b.board.forget(*old.fetch);
    CHECK(b.ask("/m", 100ms).fetch == next.fetch);
}

TEST_CASE("a fetch that never ends holds up nobody for ever") {
    Board b;
    const auto lost = b.ask("/m", 0ms);
    CHECK(b.ask("/m", 50ms + 999ms).fetch == lost.fetch);
    CHECK(b.ask("/m", 50ms + 1'000ms).fetch != lost.fetch);
}

TEST_CASE("without anybody who fetches nothing is shared") {
    PageBoard board;
    CHECK_FALSE(board.ask({"/m", ""}, {}, metrics::Clock::now()).fetch);
}

}  // namespace noren::proxy::engine_page
