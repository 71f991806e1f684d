#pragma once
// Where a request's time goes: at every moment between its head and its end it is in exactly one stage, so
// the stages add up to its duration by construction.

#include <array>
#include <cstddef>
#include <string_view>

#include "metrics/clock.hpp"

namespace noren::metrics {

enum class Stage : unsigned char {
    upload,   ///< request body on its way: from the client before admission, to the engine after connect
    queue,    ///< ready to be admitted, waiting for a permit
    connect,  ///< admitted, getting an upstream connection
    prefill,  ///< sent, no output yet: the engine's queue and prefill; without streaming, all of the answer
    decode,   ///< first output seen, answer running; of a tunnel, all of it
    stall,    ///< waiting for a slow client
};
inline constexpr std::size_t k_stage_count = 6;
inline constexpr std::array<std::string_view, k_stage_count> k_stage_names = {"upload",  "queue",  "connect",
                                                                              "prefill", "decode", "stall"};
/// In a log line.
inline constexpr std::array<std::string_view, k_stage_count> k_stage_keys = {
    "upload_ms", "queue_ms", "connect_ms", "prefill_ms", "decode_ms", "stall_ms"};

/// Sums time per stage. enter() at each change; times must not go back.
class StageClock {
  public:
    explicit StageClock(TimePoint start, Stage first = Stage::upload) : since_(start), stage_(first) {}

    void enter(Stage stage, TimePoint at) {
        spent_[static_cast<std::size_t>(stage_)] += at - since_;
        since_ = at;
        stage_ = stage;
    }
    Stage current() const { return stage_; }
    /// Settled time of a stage; call enter() (with any stage) at the end to settle the last one.
    Duration spent(Stage stage) const { return spent_[static_cast<std::size_t>(stage)]; }

  private:
    std::array<Duration, k_stage_count> spent_{};
    TimePoint since_;
    Stage stage_;
};

}  // namespace noren::metrics
