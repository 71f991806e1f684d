#pragma once
// A Telemetry, and exchanges that are driven by hand at given milliseconds. Answers are OpenAI chat streams.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/exchange_meter.hpp"
#include "metrics/telemetry.hpp"
#include "tests/unit/metrics/scrape.hpp"

namespace noren::metrics::test {

/// Milliseconds after an arbitrary origin, to the nanosecond.
inline TimePoint at(double milliseconds) {
    return TimePoint(std::chrono::hours(100)) +
           std::chrono::nanoseconds(static_cast<std::int64_t>(milliseconds * 1e6 + 0.5));
}

/// k token events.
std::string tokens(int k);
std::string role_event();
std::string finish_event(std::string_view reason);
std::string usage_event(int prompt, int completion, int cached = 0, int reasoning = 0);
inline constexpr std::string_view k_done = "data: [DONE]\n\n";

struct Rig {
    /// The label of model "m" exists from the start.
    Rig();

    Scrape scrape() const { return Scrape(telemetry); }
    /// Whether the first line of the log has level error.
    bool logged_error() const;

    Telemetry telemetry;
    std::vector<std::string> log;  ///< lines so far
};

/// One exchange. The steps up to a request sent, at fixed times: head 0, ready 10, admitted 30, connected 35,
/// sent 36 ms.
class Driven {
  public:
    explicit Driven(Rig& rig, ApiEndpoint endpoint = ApiEndpoint::chat_completions, bool gated = true)
        : meter(rig.telemetry, endpoint, gated, "id-1", "POST", "/v1/chat/completions", at(0)) {}

    void until_sent(std::string_view model = "m", std::int64_t choices = 1);
    void stream_head(double ms) { meter.answer_head(200, "text/event-stream", "", at(ms)); }
    /// One read from the engine.
    void read(double ms, std::string_view bytes);
    void end(double ms, Outcome outcome = Outcome::ok, int status = 200, std::string_view reason = {});
    /// The usual end of a whole answer: the engine's side and the client's at once.
    void whole(double ms);

    ExchangeMeter meter;
};

/// A stream with a rig of its own, driven up to its head.
struct Stream : Rig, Driven {
    explicit Stream(double head_ms) : Driven(static_cast<Rig&>(*this)) {
        until_sent();
        stream_head(head_ms);
    }
};

}  // namespace noren::metrics::test
