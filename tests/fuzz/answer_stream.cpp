// The observer of answers: whatever comes, however it comes, it sees the same and ends.

#include <array>
#include <string_view>

#include "metrics/observe/response_observer.hpp"
#include "tests/fuzz/input.hpp"

using noren::metrics::ResponseObserver;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::array<std::string_view, 4> k_types = {"text/event-stream", "application/x-ndjson",
                                                         "application/json", "text/event-stream; charset=x"};
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    const int status = choice >= 240 ? 500 : 200;
    const std::string_view type = k_types[choice % k_types.size()];
    ResponseObserver whole(status, type, "");
    ResponseObserver pieces(status, type, "");
    std::uint64_t events = whole.feed(input.rest());
    std::uint64_t in_pieces = 0;
    fuzz::in_pieces(input.rest(), choice, [&](std::string_view piece) { in_pieces += pieces.feed(piece); });
    fuzz::expect(events == in_pieces, "as many token events however the bytes come");
    events += whole.finish();
    in_pieces += pieces.finish();
    fuzz::expect(events == in_pieces, "as many at the end");
    fuzz::expect(whole.observation() == pieces.observation(), "the same observation");
    fuzz::expect(whole.observation().token_events == events, "what was told is what is counted");
    return 0;
}
