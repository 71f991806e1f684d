#pragma once
// What an ExchangeMeter keeps of one exchange. Private to exchange_meter.cpp, which stamps what happens, and
// exchange_record.cpp, which writes it all down at the end.

#include <cstdint>
#include <optional>
#include <string>

#include <prometheus/gauge.h>

#include "metrics/exchange_meter.hpp"
#include "metrics/telemetry.hpp"
#include "metrics/token_clock.hpp"

namespace noren::metrics {

/// A gauge that is one higher for as long as this holds it.
class Held {
  public:
    explicit Held(prometheus::Gauge& gauge) : gauge_(&gauge) { gauge_->Increment(); }
    ~Held() { gauge_->Decrement(); }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

  private:
    prometheus::Gauge* gauge_;
};

struct ExchangeMeter::State {
    State(Telemetry& t, ApiEndpoint e, bool g, std::string_view id, std::string_view m, std::string_view p,
          TimePoint at)
        : telemetry(t),
          endpoint(e),
          gated(g),
          began(at),
          request_id(id),
          method(m),
          path(p),
          stages(at),
          inflight(std::in_place, t.process().inflight) {}

    // While it runs.
    ModelSeries& series();
    void stamp(std::uint32_t events, TimePoint at);
    void first_token(TimePoint at);
    void record_gaps(const TokenClock::Gaps& gaps);
    void answer_ended();
    void stop_observing() noexcept;
    Phase phase() const;

    /// All that is known when it is over.
    struct End {
        Ending how;
        Observation seen;
        ByteCounts bytes;
        TimePoint at;
        Phase left_in;
    };
    Ending refined(Ending ending, const Observation& seen) const;
    void record(const End& end);
    void record_times(const End& end);
    void record_tokens(const End& end);
    void record_causes(const End& end);
    void record_bytes(const ByteCounts& bytes);
    std::optional<double> time_per_output_token(const Observation& seen) const;
    std::string log_line(const End& end) const;

    Telemetry& telemetry;
    const ApiEndpoint endpoint;
    const bool gated;
    const TimePoint began;
    const std::string_view request_id, method, path;  ///< who made the meter keeps them

    StageClock stages;
    Stage before_stall = Stage::upload;
    std::optional<TimePoint> queued_at, connected_at, sent_at;
    bool admitted = false;
    bool body_whole = false;
    bool reused = false;

    std::string model;
    std::int64_t choices = 1;  ///< in all
    std::int64_t of_each_prompt = 1;
    bool stream_asked = false;
    int upstream_status = 0;

    std::optional<ResponseObserver> observer;
    bool observer_over = false;
    bool streaming = false;
    bool upstream_over = false;
    TokenClock tokens;
    std::uint32_t fresh_events = 0;  ///< completed by body() since the last mark()
    ModelSeries* model_series = nullptr;

    std::optional<Held> inflight;
    std::optional<Held> awaiting;
    std::optional<Held> stalled;
    std::optional<Held> tunnel;
    bool finished = false;
};

}  // namespace noren::metrics
