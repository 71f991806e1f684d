// The engine's batch in virtual time: no clock is read and nothing sleeps in this file.

#include "tests/sim/scheduler.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <catch2/catch.hpp>

namespace {

using namespace std::chrono_literals;
using sim::Duration;
using sim::GpuModel;
using sim::Output;
using sim::Scheduler;
using sim::SequenceId;
using sim::SequenceNeed;
using sim::TimePoint;

constexpr TimePoint k_start{1'000'000s};

double seconds(Duration d) {
    return std::chrono::duration<double>(d).count();
}

struct Arrival {
    TimePoint at;
    SequenceNeed need;
};

struct Result {
    std::vector<double> ttft;  // in order of arrival
    double tokens_per_second = 0;
    std::uint64_t tokens = 0;
    std::size_t most_running = 0;
    std::uint64_t most_kv = 0;

    double ttft_at(double quantile) const {
        std::vector<double> sorted = ttft;
        std::ranges::sort(sorted);
        return sorted[static_cast<std::size_t>(quantile * static_cast<double>(sorted.size() - 1))];
    }
};

/// Runs all arrivals to their end.
Result run(const GpuModel& model, const std::vector<Arrival>& arrivals) {
    Scheduler scheduler(model);
    Result result;
    result.ttft.resize(arrivals.size());
    std::map<SequenceId, std::size_t> index;
    std::size_t next = 0;
    TimePoint now = arrivals.front().at;
    while (next < arrivals.size() || scheduler.step_end()) {
        const auto step_end = scheduler.step_end();
        if (next < arrivals.size() && (!step_end || arrivals[next].at < *step_end)) {
            now = arrivals[next].at;
            index[scheduler.add(arrivals[next].need, now)] = next;
            ++next;
        } else {
            now = *step_end;
            for (const Output& output : scheduler.finish_step(now)) {
                const std::size_t i = index.at(output.id);
                if (output.first == 0) result.ttft[i] = seconds(now - arrivals[i].at);
                result.tokens += output.count;
            }
        }
        result.most_running = std::max(result.most_running, scheduler.running());
        result.most_kv = std::max(result.most_kv, scheduler.kv_reserved());
    }
    result.tokens_per_second = static_cast<double>(result.tokens) / seconds(now - arrivals.front().at);
    return result;
}

/// Poisson arrivals at `rate` requests/s for a minute: 200 tokens in, 100 out.
std::vector<Arrival> poisson(double rate, unsigned seed = 1) {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> gap(rate);
    std::vector<Arrival> arrivals;
    for (double t = gap(random); t < 60; t += gap(random)) {
        const auto offset = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(t));
        arrivals.push_back({k_start + offset, {.prompt_tokens = 200, .output_tokens = 100}});
    }
    return arrivals;
}

}  // namespace

TEST_CASE("a lone sequence takes prefill plus one step per token") {
    GpuModel model;
    model.prefill_tps = 1000;
    model.step_tokens = 100;
    model.step_base = 10ms;
    model.step_per_sequence = 1ms;
    model.step_per_kv_token = Duration{0};
    Scheduler scheduler(model);
    const SequenceId id = scheduler.add({.prompt_tokens = 150, .output_tokens = 3}, k_start);

    // 150 prompt tokens in chunks of 100 and 50: 10 + 100 ms, then 10 + 50 ms and the first token.
    REQUIRE(scheduler.step_end() == k_start + 110ms);
    CHECK(scheduler.finish_step(k_start + 110ms).empty());
    REQUIRE(scheduler.step_end() == k_start + 170ms);
    auto outputs = scheduler.finish_step(k_start + 170ms);
    REQUIRE(outputs.size() == 1);
    CHECK(outputs[0].id == id);
    CHECK(outputs[0].first == 0);
    CHECK(outputs[0].count == 1);
    CHECK_FALSE(outputs[0].last);
    CHECK(outputs[0].admitted_at == k_start);

    // Then 11 ms a token.
    REQUIRE(scheduler.step_end() == k_start + 181ms);
    CHECK_FALSE(scheduler.finish_step(k_start + 181ms)[0].last);
    REQUIRE(scheduler.step_end() == k_start + 192ms);
    CHECK(scheduler.finish_step(k_start + 192ms)[0].last);
    CHECK_FALSE(scheduler.step_end());
    CHECK(scheduler.running() == 0);
    CHECK(scheduler.kv_reserved() == 0);
}

TEST_CASE("the context of the batch makes its steps longer") {
    GpuModel model;
    model.step_base = 10ms;
    model.step_per_sequence = Duration{0};
    model.step_per_kv_token = 1us;
    model.prefill_tps = 1e9;
    Scheduler scheduler(model);
    scheduler.add({.prompt_tokens = 500, .output_tokens = 3}, k_start);
    const TimePoint prefilled = *scheduler.step_end();
    scheduler.finish_step(prefilled);
    CHECK(*scheduler.step_end() - prefilled == 10ms + 501us);
}

TEST_CASE("a late owner does not slow the engine, a very late one does not make it hurry") {
    GpuModel model;
    model.step_base = 10ms;
    model.step_per_sequence = model.step_per_kv_token = Duration{0};
    model.prefill_tps = 1e9;
    Scheduler scheduler(model);
    scheduler.add({.prompt_tokens = 1, .output_tokens = 10}, k_start);
    const TimePoint first = *scheduler.step_end();
    scheduler.finish_step(first + 3ms);
    CHECK(*scheduler.step_end() == first + 10ms);
    scheduler.finish_step(first + 40ms);
    CHECK(*scheduler.step_end() == first + 50ms);
}

TEST_CASE("throughput has a knee and TTFT explodes past it") {
    const GpuModel model;
    std::map<int, Result> at;
    for (int rate : {1, 2, 4, 8, 16, 32})
        at[rate] = run(model, poisson(rate));

    // Below the knee throughput follows the demand (100 tokens a request), and the first token is quick.
    CHECK(at[1].tokens_per_second == Approx(100).epsilon(0.25));
    CHECK(at[4].tokens_per_second == Approx(400).epsilon(0.25));
    CHECK(at[4].tokens_per_second > 3 * at[1].tokens_per_second);
    CHECK(at[4].ttft_at(0.9) < 0.15);

    // Past it more demand gives no more tokens, only waiting.
    CHECK(at[32].tokens_per_second < 1.1 * at[16].tokens_per_second);
    CHECK(at[32].tokens_per_second < 32 * 100 / 2.0);
    CHECK(at[16].ttft_at(0.5) > 20 * at[4].ttft_at(0.5));
    CHECK(at[32].ttft_at(0.5) > at[16].ttft_at(0.5));
    CHECK(at[32].most_running == model.max_batch);
}

TEST_CASE("the same arrivals give the same times") {
    const auto arrivals = poisson(12, 7);
    const Result one = run(GpuModel{}, arrivals);
    const Result two = run(GpuModel{}, arrivals);
    CHECK(one.ttft == two.ttft);
    CHECK(one.tokens == 100 * arrivals.size());
}

TEST_CASE("batch and KV budget are never exceeded, whatever comes and goes") {
    GpuModel model;
    model.max_batch = 8;
    model.kv_tokens = 1000;
    Scheduler scheduler(model);
    std::mt19937 random(3);
    const auto draw = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most + 1); };
    std::vector<SequenceId> live;
    TimePoint now = k_start;
    bool full_batch = false;
    bool full_kv = false;
    for (int step = 0; step < 20'000; ++step) {
        const std::uint32_t what = draw(10);
        if (what <= 3) {
            SequenceNeed need{draw(400), draw(100), draw(3)};
            if (step % 1000 < 500) need = {draw(20), draw(20), 1};
            REQUIRE(scheduler.fits(need));
            live.push_back(scheduler.add(need, now));
        } else if (what == 4 && !live.empty()) {
            scheduler.remove(live[draw(static_cast<std::uint32_t>(live.size())) - 1]);
        } else if (scheduler.step_end()) {
            now = *scheduler.step_end();
            scheduler.finish_step(now);
        }
        REQUIRE(scheduler.running() <= model.max_batch);
        REQUIRE(scheduler.kv_reserved() <= model.kv_tokens);
        full_batch = full_batch || scheduler.running() == model.max_batch;
        full_kv = full_kv || (scheduler.waiting() > 0 && scheduler.running() < model.max_batch);
    }
    CHECK(full_batch);  // both bounds were really met
    CHECK(full_kv);
    for (SequenceId id : live)
        scheduler.remove(id);
    CHECK(scheduler.running() == 0);
    CHECK(scheduler.waiting() == 0);
    CHECK(scheduler.kv_reserved() == 0);
}

TEST_CASE("a sequence that could never run is known beforehand") {
    GpuModel model;
    model.kv_tokens = 100;
    const Scheduler scheduler(model);
    CHECK(scheduler.fits({.prompt_tokens = 60, .output_tokens = 40}));
    CHECK_FALSE(scheduler.fits({.prompt_tokens = 60, .output_tokens = 41}));
    CHECK_FALSE(scheduler.fits({.prompt_tokens = 0, .output_tokens = 1}));
}

TEST_CASE("the queue is first in, first out, and its head is not overtaken by what would fit") {
    GpuModel model;
    model.kv_tokens = 100;
    model.prefill_tps = 1e9;
    Scheduler scheduler(model);
    scheduler.add({.prompt_tokens = 50, .output_tokens = 10}, k_start);
    const SequenceId big = scheduler.add({.prompt_tokens = 50, .output_tokens = 10}, k_start);
    const SequenceId small = scheduler.add({.prompt_tokens = 1, .output_tokens = 1}, k_start);
    std::vector<SequenceId> firsts;
    while (scheduler.step_end()) {
        for (const Output& output : scheduler.finish_step(*scheduler.step_end())) {
            if (output.first == 0) firsts.push_back(output.id);
        }
    }
    REQUIRE(firsts.size() == 3);
    CHECK(firsts[1] == big);
    CHECK(firsts[2] == small);
}

TEST_CASE("a removed sequence frees its place at once and yields nothing more") {
    GpuModel model;
    model.max_batch = 1;
    Scheduler scheduler(model);
    const SequenceId running = scheduler.add({.prompt_tokens = 10, .output_tokens = 50}, k_start);
    const SequenceId queued = scheduler.add({.prompt_tokens = 10, .output_tokens = 50}, k_start);
    const SequenceId next = scheduler.add({.prompt_tokens = 10, .output_tokens = 1}, k_start);
    scheduler.finish_step(*scheduler.step_end());

    scheduler.remove(queued);
    CHECK(scheduler.waiting() == 1);
    scheduler.remove(running);
    CHECK(scheduler.running() == 0);
    CHECK(scheduler.kv_reserved() == 0);

    CHECK(scheduler.finish_step(*scheduler.step_end()).empty());
    const auto outputs = scheduler.finish_step(*scheduler.step_end());
    REQUIRE(outputs.size() == 1);
    CHECK(outputs[0].id == next);
    scheduler.remove(next);  // finished already: nothing to do
    CHECK(scheduler.kv_reserved() == 0);
}

TEST_CASE("speculative decoding: several tokens a step, the last step has the rest") {
    Scheduler scheduler{GpuModel{}};
    scheduler.add({.prompt_tokens = 1, .output_tokens = 7, .tokens_per_step = 3}, k_start);
    std::vector<std::uint32_t> counts;
    while (scheduler.step_end()) {
        for (const Output& output : scheduler.finish_step(*scheduler.step_end()))
            counts.push_back(output.count);
    }
    CHECK(counts == std::vector<std::uint32_t>{3, 3, 1});
}

TEST_CASE("prompts share what the decoding sequences leave of a step, and never starve") {
    GpuModel model;
    model.step_tokens = 2;
    model.max_batch = 8;
    Scheduler scheduler(model);
    for (int i = 0; i < 4; ++i)
        scheduler.add({.prompt_tokens = 1, .output_tokens = 40}, k_start);
    const SequenceId late = scheduler.add({.prompt_tokens = 10, .output_tokens = 1}, k_start);
    int steps = 0;
    for (bool seen = false; !seen; ++steps) {
        REQUIRE(steps < 40);  // while the four still decode
        for (const Output& output : scheduler.finish_step(*scheduler.step_end()))
            seen |= output.id == late;
    }
    CHECK(steps >= 10);
}
