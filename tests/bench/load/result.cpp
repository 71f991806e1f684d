#include "tests/bench/load/result.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace load {

std::optional<double> Result::ttft() const {
    if (!first) return std::nullopt;
    return std::chrono::duration<double>(*first - start).count();
}

std::optional<double> Result::tpot() const {
    if (!first || tokens < 2 || *last <= *first) return std::nullopt;
    return std::chrono::duration<double>(*last - *first).count() / static_cast<double>(tokens - 1);
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
        ++sum.requests;
        sum.tokens += result->tokens;
        if (result->status != 0) ++sum.statuses[result->status];
        if (!result->error.empty()) ++sum.errors[result->error];
        if (!result->reason.empty()) ++sum.reasons[result->reason];
        const bool refused = result->status == 429 || result->status == 503;
        sum.left += result->left;
        sum.refused += refused;
        sum.failed += !result->error.empty() || (result->status >= 400 && !refused);
        if (!result->ok()) continue;
        ++sum.ok;
        sum.good_tokens += result->tokens;
        sum.e2e.add(result->e2e());
        if (const auto ttft = result->ttft()) sum.ttft.add(*ttft);
        if (const auto tpot = result->tpot()) {
            sum.tpot.add(*tpot);
            sum.tps.add(1 / *tpot);
        }
    }
    sum.seconds = std::chrono::duration<double>(end - begin).count();
    return sum;
}

}  // namespace load
