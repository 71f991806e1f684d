#pragma once
// A continuous-batching GPU engine, reduced to what decides throughput and latency. Sans-IO: time comes in,
// tokens come out; nothing here sleeps or reads a clock, so a whole load test runs in virtual time.

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace sim {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = std::chrono::nanoseconds;
using SequenceId = std::uint64_t;

/// The cost model of one engine. The defaults resemble a 7B model on a small GPU: 80 tokens/s for a lone
/// stream, about 1,300 tokens/s with a full batch of 32.
struct GpuModel {
    std::uint32_t max_batch = 32;      ///< sequences in one step
    std::uint64_t kv_tokens = 49'152;  ///< KV cache, in tokens; a sequence reserves prompt + output
    std::uint32_t step_tokens = 512;   ///< tokens one step may process (vLLM: max_num_batched_tokens)
    double prefill_tps = 20'000;       ///< prompt tokens per second
    Duration step_base = std::chrono::milliseconds(12);           ///< reading the weights once
    Duration step_per_sequence = std::chrono::microseconds(400);  ///< per decoding sequence
    Duration step_per_kv_token{20};  ///< per token of context attended to, all sequences together
};

/// What one sequence asks of the engine.
struct SequenceNeed {
    std::uint32_t prompt_tokens = 1;    ///< >= 1
    std::uint32_t output_tokens = 1;    ///< >= 1
    std::uint32_t tokens_per_step = 1;  ///< > 1 = speculative decoding that always succeeds
};

/// Tokens [first, first + count) of a sequence, ready now.
struct Output {
    SequenceId id = 0;
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool last = false;      ///< the sequence is finished and has left the batch
    TimePoint admitted_at;  ///< when it left the engine's own waiting queue
};

/// Policy: strict FIFO admission, between steps, while both the batch and the KV budget have room (the
/// head of the queue is never overtaken). A step mixes decode and chunked prefill as vLLM V1 does: every
/// decoding sequence takes part first, what is left of `step_tokens` goes to prompts in admission order. The
/// step that ends a prompt yields that sequence's first token. KV is reserved whole at admission (as TGI
/// does), so nothing is ever preempted.
///
/// Step time = base + per_sequence * decoding + per_kv_token * context + prompt tokens / prefill_tps. As base
/// dominates at first, throughput grows with the batch almost for free; once the batch is full it is flat
/// and every further arrival only waits: TTFT explodes past the knee.
///
/// Not thread-safe.
class Scheduler {
  public:
    explicit Scheduler(const GpuModel& model) : model_(model) {}

    /// Whether the sequence could ever run; add() needs this to be true.
    bool fits(const SequenceNeed& need) const;

    /// Queues a sequence; an idle engine starts a step with it at once.
    SequenceId add(const SequenceNeed& need, TimePoint now);

    /// Takes a sequence out, waiting or running; its batch place and KV are free at once. The step it was
    /// part of takes as long as it would have. Unknown or finished ids are ignored.
    void remove(SequenceId id);

    /// When the running step ends; nullopt = idle. The owner calls finish_step() then.
    std::optional<TimePoint> step_end() const { return step_end_; }

    /// Ends the running step and begins the next. A caller that is late by less than a step does not slow
    /// the engine: the next step begins when this one should have ended.
    std::vector<Output> finish_step(TimePoint now);

    std::size_t running() const { return running_.size(); }
    std::size_t waiting() const { return waiting_.size(); }
    std::uint64_t kv_reserved() const { return kv_reserved_; }
    const GpuModel& model() const { return model_; }

  private:
    struct Sequence {
        SequenceId id;
        SequenceNeed need;
        TimePoint admitted_at{};
        std::uint32_t prefilled = 0;
        std::uint32_t produced = 0;
        std::uint32_t prefill_now = 0;  // part of the running step
        bool decode_now = false;        // likewise
        bool prefill_done() const { return prefilled == need.prompt_tokens; }
        std::uint64_t reserved() const { return std::uint64_t{need.prompt_tokens} + need.output_tokens; }
    };

    void begin_step(TimePoint start);
    void admit(TimePoint now);
    Output advance(Sequence& sequence);

    GpuModel model_;
    std::deque<Sequence> waiting_;
    std::vector<Sequence> running_;  // in admission order
    std::uint64_t kv_reserved_ = 0;
    SequenceId next_id_ = 1;
    std::optional<TimePoint> step_end_;
    Duration step_length_{};
};

}  // namespace sim
