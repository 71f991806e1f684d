#pragma once
// What one request came to, and what many of them came to together.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace load {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

struct Result {
    std::string id;
    std::size_t target = 0;  ///< index of the url
    std::size_t stage = 0;
    int status = 0;      ///< 0: no answer
    std::string error;   ///< kind: "connect", "cut", "altered", ...; empty if all was well
    std::string reason;  ///< x-noren-reason
    std::optional<std::uint32_t> retry_after;
    bool left = false;  ///< we left on purpose
    TimePoint start, end;
    std::optional<TimePoint> first, last;  ///< token events, streamed answers only
    std::uint64_t events = 0;              ///< with text
    std::uint64_t tokens = 0;              ///< as reported, else events
    std::uint64_t body_bytes = 0, body_hash = 0;

    bool ok() const { return error.empty() && !left && status >= 200 && status < 300; }
    double e2e() const { return std::chrono::duration<double>(end - start).count(); }
    std::optional<double> ttft() const;
    /// (last - first) / (tokens - 1): N tokens span N-1 intervals.
    std::optional<double> tpot() const;
};

/// Exact: keeps every sample.
class Samples {
  public:
    void add(double value) { values_.push_back(value); }
    bool empty() const { return values_.empty(); }
    std::size_t count() const { return values_.size(); }
    double mean() const;
    /// Nearest rank, q in [0, 1]. Of nothing: 0.
    double quantile(double q) const;

  private:
    mutable std::vector<double> values_;
    mutable bool sorted_ = false;
};

struct Summary {
    std::uint64_t requests = 0, ok = 0, left = 0, refused = 0, failed = 0;
    std::uint64_t tokens = 0, good_tokens = 0;
    double seconds = 0;
    Samples ttft, tpot, tps, e2e;
    std::map<int, std::uint64_t> statuses;
    std::map<std::string, std::uint64_t> errors;   ///< kind -> how many
    std::map<std::string, std::uint64_t> reasons;  ///< x-noren-reason of refusals

    double requests_per_second() const { return seconds > 0 ? static_cast<double>(ok) / seconds : 0; }
    double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
    /// Tokens of answers that were whole.
    double good_tokens_per_second() const {
        return seconds > 0 ? static_cast<double>(good_tokens) / seconds : 0;
    }
};

/// Of those results that a predicate lets through; seconds from the first start to the last end.
template <typename Keep>
Summary summarise(const std::vector<Result>& results, Keep&& keep);

Summary summarise(const std::vector<const Result*>& results);

template <typename Keep>
Summary summarise(const std::vector<Result>& results, Keep&& keep) {
    std::vector<const Result*> chosen;
    for (const Result& result : results)
        if (keep(result)) chosen.push_back(&result);
    return summarise(chosen);
}

}  // namespace load
