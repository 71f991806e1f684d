#include "proxy/end_signals.hpp"

#include <csignal>

#include <catch2/catch.hpp>

namespace noren::proxy {

TEST_CASE("a second signal ends at once, unless it is an echo of the first") {
    using Wish = EndSignals::Wish;
    const EndSignals::TimePoint start{};
    EndSignals signals;
    CHECK(signals.on_signal(SIGTERM, start) == Wish::drain_and_end);
    CHECK(signals.on_signal(SIGTERM, start) == Wish::none);
    CHECK(signals.on_signal(SIGTERM, start + k_signal_echo - std::chrono::nanoseconds(1)) == Wish::none);
    CHECK(signals.on_signal(SIGINT, start) == Wish::end_at_once);
    CHECK(signals.on_signal(SIGTERM, start + k_signal_echo) == Wish::end_at_once);
    CHECK(signals.on_signal(SIGTERM, start + std::chrono::hours(1)) == Wish::end_at_once);
}

}  // namespace noren::proxy
