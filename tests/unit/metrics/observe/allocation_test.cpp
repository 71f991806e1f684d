// A token on its way is looked at without allocating memory.

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "metrics/observe/response_observer.hpp"
#include "tests/unit/metrics/observe/counted_allocations.hpp"

using namespace noren::metrics;
using noren::metrics::testing::allocations_of_this_thread;

namespace {

struct Stream {
    std::string_view content_type;
    std::string_view event;  ///< % is the text
};

constexpr std::string_view k_sse = "text/event-stream";

const std::vector<Stream>& streams() {
    static const std::vector<Stream> all = {
        {k_sse,
         R"(data: {"id":"c-1","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,"delta":{"content":"%"},"logprobs":null,"finish_reason":null}]})"
         "\n\n"},
        // Counts that are different each time: no event is like the last one.
        {k_sse,
         R"(data: {"choices":[{"index":0,"delta":{"content":"%"}}],"usage":{"prompt_tokens":9,"completion_tokens":#}})"
         "\n\n"},
        {k_sse,
         "event: content_block_delta\n"
         R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%"}})"
         "\n\n"},
        {k_sse,
         "event: response.output_text.delta\n"
         R"(data: {"type":"response.output_text.delta","delta":"%","sequence_number":#,"logprobs":[]})"
         "\n\n"},
        {k_sse,
         R"(data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"%\":\u00e9"}}]}}]})"
         "\n\n"},
        {k_sse, R"(data: {"text":"%","meta_info":{"id":"x","finish_reason":null,"completion_tokens":#}})"
                "\n\n"},
        {"application/x-ndjson",
         R"({"model":"m","created_at":"2026-01-01T00:00:#Z","message":{"role":"assistant","content":"%"},"done":false})"
         "\n"},
    };
    return all;
}

std::string numbered(std::string event, int number) {
    if (const auto place = event.find('%'); place != std::string::npos)
        event.replace(place, 1, number % 2 == 0 ? " soup" : " of the day");
    if (const auto place = event.find('#'); place != std::string::npos)
        event.replace(place, 1, std::to_string(number));
    return event;
}

/// Of a thousand events after the first few.
std::uint64_t allocations_for(const Stream& stream, std::size_t piece) {
    std::vector<std::string> events;
    for (int i = 1; i <= 1010; ++i)
        events.push_back(numbered(std::string(stream.event), i));
    ResponseObserver observer(200, stream.content_type, "");
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (i == 10) before = allocations_of_this_thread();
        for (std::size_t at = 0; at < events[i].size(); at += piece)
            observer.feed(std::string_view(events[i]).substr(at, piece));
    }
    REQUIRE(observer.token_events() == events.size());
    return allocations_of_this_thread() - before;
}

}  // namespace

TEST_CASE("observing a token event allocates nothing, whatever the API") {
    const std::uint64_t before = allocations_of_this_thread();
    CHECK(streams().size() == 7);
    REQUIRE(allocations_of_this_thread() > before);  // it does count

    for (const Stream& stream : streams()) {
        INFO(stream.event);
        CHECK(allocations_for(stream, 4096) == 0);
        CHECK(allocations_for(stream, 100) == 0);  // cut in two or three
        CHECK(allocations_for(stream, 1) == 0);
    }
}
