#pragma once
// What an ExchangeMeter keeps of one exchange. Private to exchange_meter.cpp, which stamps what happens, and
// exchange_record.cpp, which writes it all down at the end.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
    State(Telemetry& t, Endpoint e, bool g, TimePoint at)
        : telemetry(t),
          endpoint(e),
          gated(g),
          began(at),
          stages(at),
          inflight(std::in_place, t.process().inflight) {}

    // While it runs.
    ModelSeries& series();
    void stamp(std::uint32_t events, TimePoint at);
    void first_token(TimePoint at);
    void flush_gaps();
    void answer_ended();
    void stop_observing() noexcept;
    Phase phase() const;

    // At the end.
    Ending refined(Ending ending) const;
    void record(const Ending& ending, const ByteCounts& bytes, TimePoint at);
    void record_times(const Ending& ending, TimePoint at);
    void record_tokens(const Ending& ending);
    void record_causes(const Ending& ending);
    void record_bytes(const ByteCounts& bytes);
    std::optional<double> time_per_output_token() const;
    std::string log_line(const Ending& ending, const ByteCounts& bytes, TimePoint at) const;

    Telemetry& telemetry;
    const Endpoint endpoint;
    const bool gated;
    const TimePoint began;
    std::string request_id, method, path;

    StageClock stages;
    Stage before_stall = Stage::upload;
    std::optional<TimePoint> queued_at, connected_at, sent_at;
    bool admitted = false;
    bool body_whole = false;
    bool reused = false;

    std::string model;
    std::int64_t choices = 1;
    bool stream_asked = false;
    int upstream_status = 0;

    std::optional<ResponseObserver> observer;
    bool observer_over = false;
    Observation seen;  ///< settled at the end
    bool streaming = false;
    bool upstream_over = false;
    TokenClock tokens;
    std::vector<double> gap_counts;  ///< for flush_gaps(), kept so that only its first call allocates
    std::uint32_t fresh_events = 0;  ///< completed by body() since the last mark()
    ModelSeries* model_series = nullptr;

    std::optional<Held> inflight;
    std::optional<Held> awaiting;
    std::optional<Held> stalled;
    std::optional<Held> tunnel;
    Phase left_in = Phase::upload;  ///< where it was at its end
    bool finished = false;
};

}  // namespace noren::metrics
