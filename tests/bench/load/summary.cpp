#include "tests/bench/load/summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace load {
namespace {

void count(Summary& sum, const Result& result) {
    ++sum.requests;
    sum.ok += result.ok();
    sum.checked += result.ok() && result.checked;
    sum.body_checked += result.ok() && result.body_checked;
    sum.refused += result.refused();
    sum.failed += result.failed();
    sum.left += result.left;
    sum.slow += result.slow;
    sum.retried += result.retried;
    sum.tokens += result.tokens;
    sum.body_bytes += result.body_bytes;
    sum.bytes_altered += result.bytes_altered;
    sum.bytes_lost += result.bytes_lost;
    sum.bytes_extra += result.bytes_extra;
    if (result.status != 0) ++sum.statuses[result.status];
    if (!result.reason.empty()) ++sum.reasons[result.reason];
    if (result.refused() && result.retry_after) sum.retry_after.add(*result.retry_after);
    if (result.error.empty()) return;
    ++sum.errors[result.error];
    sum.details.try_emplace(result.error, result.detail);
}

void measure(Summary& sum, const Result& result) {
    sum.e2e.add(result.e2e());
    if (const auto ttft = result.ttft()) sum.ttft.add(*ttft);
    if (const auto tpot = result.tpot()) {
        sum.tpot.add(*tpot);
        sum.tps.add(1 / *tpot);
    }
}

}  // namespace

void Samples::add(double value) {
    values_.push_back(value);
    sorted_ = false;
}

double Samples::mean() const {
    return values_.empty()
               ? 0
               : std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(count());
}

double Samples::quantile(double q) const {
    if (values_.empty()) return 0;
    if (!sorted_) std::sort(values_.begin(), values_.end());
    sorted_ = true;
    const double rank = std::ceil(q * static_cast<double>(count()));
    return values_[static_cast<std::size_t>(std::max(1.0, rank)) - 1];
}

Summary summarise(const std::vector<const Result*>& results) {
    Summary sum;
    if (results.empty()) return sum;
    TimePoint begin = results.front()->start, end = begin;
    for (const Result* result : results) {
        begin = std::min(begin, result->start);
        end = std::max(end, result->end);
        count(sum, *result);
        if (!result->ok()) continue;
        sum.good_tokens += result->tokens;
        if (!result->slow) measure(sum, *result);
    }
    sum.seconds = std::chrono::duration<double>(end - begin).count();
    return sum;
}

}  // namespace load
