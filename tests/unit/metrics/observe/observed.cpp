#include "tests/unit/metrics/observe/observed.hpp"

#include <catch2/catch.hpp>

namespace noren::metrics::testing {
namespace {

Observation in_pieces(std::string_view body, std::string_view content_type, int status, std::size_t size) {
    ResponseObserver observer(status, content_type, "");
    for (std::size_t at = 0; at < body.size(); at += size)
        observer.feed(body.substr(at, size));
    observer.finish();
    return observer.observation();
}

Observation cut_at(std::string_view body, std::string_view content_type, int status, std::size_t cut) {
    ResponseObserver observer(status, content_type, "");
    observer.feed(body.substr(0, cut));
    observer.feed(body.substr(cut));
    observer.finish();
    return observer.observation();
}

}  // namespace

Observation observed(std::string_view body, std::string_view content_type, int status) {
    const Observation whole = in_pieces(body, content_type, status, body.size() + 1);
    REQUIRE(in_pieces(body, content_type, status, 1) == whole);
    for (std::size_t cut = 1; cut < body.size() && cut < 3000; ++cut) {
        INFO("cut at " << cut);
        REQUIRE(cut_at(body, content_type, status, cut) == whole);
    }
    return whole;
}

std::vector<std::uint64_t> token_ends(std::string_view body, std::string_view content_type) {
    std::vector<std::uint64_t> ends;
    ResponseObserver observer(200, content_type, "");
    observer.record_offsets(&ends);
    observer.feed(body);
    observer.finish();
    return ends;
}

std::string chat(std::string_view delta) {
    return R"(data: {"choices":[{"index":0,"delta":)" + std::string(delta) + "}]}\n\n";
}

}  // namespace noren::metrics::testing
