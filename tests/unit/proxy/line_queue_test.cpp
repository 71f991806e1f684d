// The queue before a log's thread: what goes in comes out in order, and nobody waits for a reader.

#include "proxy/log/line_queue.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::proxy {
namespace {

using namespace std::chrono_literals;
using Clock = LineQueue::Clock;

constexpr Clock::time_point k_at_once{};
constexpr std::size_t k_limit = 8 * 1024;  // blocks of 1 KiB

std::vector<std::string> split(std::string_view block) {
    std::vector<std::string> lines;
    for (std::size_t end; (end = block.find('\n')) != std::string_view::npos; block.remove_prefix(end + 1))
        lines.emplace_back(block.substr(0, end));
    REQUIRE(block.empty());
    return lines;
}

/// All that is left, after the close.
std::vector<std::string> rest_of(LineQueue& queue) {
    queue.close();
    std::vector<std::string> lines;
    for (std::string block; queue.take(block, k_at_once);)
        for (std::string& line : split(block))
            lines.push_back(std::move(line));
    return lines;
}

}  // namespace

TEST_CASE("lines come out in order, each with its end, many in one block") {
    LineQueue queue(k_limit);
    queue.add("one");
    queue.add("");
    queue.add("three");
    std::string block = "what was there";
    REQUIRE(queue.take(block, k_at_once));
    CHECK(block == "one\n\nthree\n");
    queue.add("four");
    CHECK(rest_of(queue) == std::vector<std::string>{"four"});
    CHECK_FALSE(queue.take(block, k_at_once));
    CHECK(queue.dropped() == 0);
}

TEST_CASE("a full queue drops its oldest lines and counts them") {
    LineQueue queue(k_limit);
    constexpr std::uint64_t k_lines = 1'000;
    for (std::uint64_t i = 0; i < k_lines; ++i)
        queue.add(std::to_string(i) + std::string(100, '.'));
    const auto lines = rest_of(queue);
    CHECK(lines.size() + queue.dropped() == k_lines);
    CHECK(lines.size() >= 60);  // 7 KiB of 104 bytes each: one block is dropped as a whole
    CHECK(lines.size() <= 80);
    for (std::size_t i = 0; i < lines.size(); ++i)
        REQUIRE(lines[i].starts_with(std::to_string(queue.dropped() + i) + "."));
}

TEST_CASE("a line longer than a block, and than the queue, goes alone") {
    LineQueue queue(k_limit);
    const std::string huge(3 * k_limit, 'x');
    queue.add("before");
    queue.add(huge);
    queue.add("behind");
    // What does not fit beside the latest lines is dropped: here all but the last.
    CHECK(rest_of(queue) == std::vector<std::string>{"behind"});
    CHECK(queue.dropped() == 2);
    LineQueue other(k_limit);
    other.add(huge);
    CHECK(rest_of(other) == std::vector<std::string>{huge});
}

TEST_CASE("a writer that rests is woken by a whole block, not by a line") {
    // A flood is written as it comes, however long the rest: a pace of so much in a rest once lost what was
    // faster.
    LineQueue queue(k_limit);
    std::string block;
    const std::string line(100, 'x');
    for (int i = 0; i < 20; ++i)
        queue.add(line);
    REQUIRE(queue.take(block, Clock::now() + 24h));
    CHECK(split(block).size() == 10);
    REQUIRE(queue.take(block, Clock::now() + 1ms));  // what is left, when the rest is over
    CHECK(split(block).size() == 10);
    std::thread later([&] {
        for (int i = 0; i < 11; ++i)
            queue.add(line);
    });
    REQUIRE(queue.take(block, Clock::now() + 24h));
    later.join();
    CHECK(split(block).size() == 10);
}

TEST_CASE("the close ends a rest and a wait") {
    LineQueue queue(k_limit);
    queue.add("last words");
    std::thread closes([&] { queue.close(); });
    std::string block;
    CHECK(queue.take(block, Clock::now() + 24h));
    CHECK(block == "last words\n");
    CHECK_FALSE(queue.take(block, Clock::now() + 24h));
    closes.join();
}

TEST_CASE("lines of many threads come out whole, those of each in order, none twice") {
    constexpr int k_threads = 4, k_each = 20'000;
    LineQueue queue(2 << 20);  // room for all of them
    std::atomic<int> at_work = k_threads;
    std::vector<std::thread> threads;
    for (int t = 0; t < k_threads; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < k_each; ++i)
                queue.add(std::to_string(t) + " " + std::to_string(i));
            if (--at_work == 0) queue.close();
        });
    std::map<std::string, int> last;
    std::uint64_t seen = 0;
    bool in_order = true;
    for (std::string block; queue.take(block, k_at_once);)
        for (const std::string& line : split(block)) {
            const std::size_t blank = line.find(' ');
            const int number = std::stoi(line.substr(blank + 1));
            const auto [at, fresh] = last.emplace(line.substr(0, blank), -1);
            in_order = in_order && number == at->second + 1;
            at->second = number;
            ++seen;
        }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(in_order);
    CHECK(seen == k_threads * k_each);
}

}  // namespace noren::proxy
