#include "tests/sim/feed.hpp"

#include <algorithm>

namespace sim {

PacedFeed::PacedFeed(const Ask& ask, const Pace& pace, std::uint64_t seed, Sleeper& sleeper,
                     std::size_t& running)
    : choices_(ask.choices),
      tokens_(ask.output_tokens),
      per_event_(ask.tokens_per_event),
      gaps_(pace, seed, ask.id),
      start_(Clock::now()),
      due_(start_ + pace.ttft),
      sleeper_(sleeper),
      running_(running) {
    ++running_;
}

net::awaitable<std::optional<Slice>> PacedFeed::next() {
    if (first_ >= tokens_) co_return std::nullopt;
    while (!sleeper_.cancelled() && Clock::now() < due_)
        co_await sleeper_.until(due_);
    if (sleeper_.cancelled()) co_return std::nullopt;

    Slice slice{.choice = choice_, .first = first_, .count = std::min(per_event_, tokens_ - first_)};
    slice.last = slice.first + slice.count == tokens_;
    if (++choice_ == choices_) {
        choice_ = 0;
        first_ += slice.count;
        due_ += gaps_.next();
    }
    co_return slice;
}

bool BatchDriver::fits(const Ask& ask) const {
    return scheduler_.fits({ask.prompt_tokens, ask.output_tokens, ask.tokens_per_event});
}

std::unique_ptr<TokenFeed> BatchDriver::join(const Ask& ask, Sleeper& sleeper) {
    auto feed = std::make_unique<BatchFeed>(*this, sleeper);
    const SequenceNeed need{ask.prompt_tokens, ask.output_tokens, ask.tokens_per_event};
    for (std::uint32_t choice = 0; choice < ask.choices; ++choice) {
        const SequenceId id = scheduler_.add(need, Clock::now());
        places_.emplace(id, Place{feed.get(), choice});
        feed->sequences_.push_back(id);
    }
    arm();
    return feed;
}

void BatchDriver::stop() {
    stopped_ = true;
    timer_.cancel();
}

void BatchDriver::leave(SequenceId id) {
    scheduler_.remove(id);
    places_.erase(id);
}

void BatchDriver::arm() {
    if (armed_ || stopped_ || !scheduler_.step_end()) return;
    armed_ = true;
    timer_.expires_at(*scheduler_.step_end());
    timer_.async_wait([this](boost::system::error_code error) {
        armed_ = false;
        if (!error) finish_step();
    });
}

void BatchDriver::finish_step() {
    for (const Output& output : scheduler_.finish_step(Clock::now())) {
        const auto it = places_.find(output.id);
        if (it == places_.end()) continue;
        const Place place = it->second;
        if (output.last) places_.erase(it);
        place.feed->deliver(place.choice, output);
    }
    arm();
}

BatchFeed::~BatchFeed() {
    for (SequenceId id : sequences_)
        driver_.leave(id);
}

net::awaitable<std::optional<Slice>> BatchFeed::next() {
    while (ready_.empty() && !sequences_.empty() && !sleeper_.cancelled()) {
        co_await sleeper_.until(TimePoint::max());
    }
    if (ready_.empty() || sleeper_.cancelled()) co_return std::nullopt;
    const Slice slice = ready_.front();
    ready_.pop_front();
    co_return slice;
}

void BatchFeed::deliver(std::uint32_t choice, const Output& output) {
    if (!admitted_at_) admitted_at_ = output.admitted_at;
    if (output.last) std::erase(sequences_, output.id);
    ready_.push_back({choice, output.first, output.count, output.last});
    sleeper_.wake();
}

}  // namespace sim
