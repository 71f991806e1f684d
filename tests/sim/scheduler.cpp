#include "tests/sim/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace sim {

bool Scheduler::fits(const SequenceNeed& need) const {
    return need.prompt_tokens >= 1 && need.output_tokens >= 1 &&
           std::uint64_t{need.prompt_tokens} + need.output_tokens <= model_.kv_tokens;
}

SequenceId Scheduler::add(const SequenceNeed& need, TimePoint now) {
    Sequence sequence{.id = next_id_++, .need = need};
    waiting_.push_back(sequence);
    if (!step_end_) begin_step(now);
    return sequence.id;
}

void Scheduler::remove(SequenceId id) {
    const auto same = [id](const Sequence& s) { return s.id == id; };
    if (auto it = std::ranges::find_if(running_, same); it != running_.end()) {
        kv_reserved_ -= it->reserved();
        running_.erase(it);
    } else if (auto queued = std::ranges::find_if(waiting_, same); queued != waiting_.end()) {
        waiting_.erase(queued);
    }
}

std::vector<Output> Scheduler::finish_step(TimePoint now) {
    std::vector<Output> outputs;
    if (!step_end_) return outputs;
    for (Sequence& sequence : running_) {
        if (Output output = advance(sequence); output.count > 0) outputs.push_back(output);
    }
    std::erase_if(running_, [this](const Sequence& s) {
        const bool done = s.produced == s.need.output_tokens;
        if (done) kv_reserved_ -= s.reserved();
        return done;
    });
    const bool on_time = now - *step_end_ < step_length_;
    begin_step(on_time ? *step_end_ : now);
    return outputs;
}

Output Scheduler::advance(Sequence& sequence) {
    const bool was_prefilling = sequence.prefill_now > 0;
    sequence.prefilled += std::exchange(sequence.prefill_now, 0);
    const bool yields =
        std::exchange(sequence.decode_now, false) || (was_prefilling && sequence.prefill_done());
    if (!yields) return {};
    Output output{.id = sequence.id, .first = sequence.produced, .admitted_at = sequence.admitted_at};
    output.count = std::min(sequence.need.tokens_per_step, sequence.need.output_tokens - sequence.produced);
    sequence.produced += output.count;
    output.last = sequence.produced == sequence.need.output_tokens;
    return output;
}

void Scheduler::admit(TimePoint now) {
    while (!waiting_.empty() && running_.size() < model_.max_batch &&
           kv_reserved_ + waiting_.front().reserved() <= model_.kv_tokens) {
        running_.push_back(waiting_.front());
        waiting_.pop_front();
        running_.back().admitted_at = now;
        kv_reserved_ += running_.back().reserved();
    }
}

void Scheduler::begin_step(TimePoint start) {
    admit(start);
    step_end_.reset();
    if (running_.empty()) return;

    std::uint32_t decoding = 0;
    std::uint64_t context = 0;
    for (Sequence& sequence : running_) {
        sequence.decode_now = sequence.prefill_done();
        if (!sequence.decode_now) continue;
        ++decoding;
        context += sequence.prefilled + sequence.produced;
    }
    // A batch that alone fills the step still leaves one token for prompts, so none starves.
    const std::uint32_t room = model_.step_tokens > decoding ? model_.step_tokens - decoding : 1;
    std::uint32_t left = room;
    for (Sequence& sequence : running_) {
        if (sequence.prefill_done()) continue;
        sequence.prefill_now = std::min(left, sequence.need.prompt_tokens - sequence.prefilled);
        left -= sequence.prefill_now;
    }
    const std::chrono::duration<double> prefill{(room - left) / model_.prefill_tps};
    step_length_ = model_.step_base + model_.step_per_sequence * decoding +
                   model_.step_per_kv_token * static_cast<std::int64_t>(context) +
                   std::chrono::duration_cast<Duration>(prefill);
    step_end_ = start + step_length_;
}

}  // namespace sim
