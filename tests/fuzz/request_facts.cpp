// The observer of requests: the same facts however the bytes come.

#include "metrics/observe/request_observer.hpp"
#include "tests/fuzz/input.hpp"

using noren::metrics::RequestObserver;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t seed = input.byte();
    RequestObserver whole("application/json");
    RequestObserver pieces("application/json");
    whole.feed(input.rest());
    fuzz::in_pieces(input.rest(), seed, [&](std::string_view piece) { pieces.feed(piece); });
    const auto& a = whole.facts();
    const auto& b = pieces.facts();
    fuzz::expect(
        a.model == b.model && a.stream == b.stream && a.max_tokens == b.max_tokens && a.choices == b.choices,
        "the same facts");
    fuzz::expect(!a.model || a.model->size() <= 256, "a bounded model name");
    return 0;
}
