#pragma once
// Prometheus text, read back: tests judge what a scraper would see, not what the code says it counted.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "metrics/telemetry.hpp"

namespace noren::metrics::test {

class Scrape {
  public:
    /// Throws std::runtime_error on text that is no exposition, or that has a series twice.
    explicit Scrape(std::string_view text);
    explicit Scrape(const Telemetry& telemetry) : Scrape(telemetry.exposition()) {}

    /// series: name{label="value",...} with the labels in any order. Throws if it is not there.
    double operator()(std::string_view series) const;
    bool has(std::string_view series) const;
    /// Series of that very name.
    std::size_t count(std::string_view name) const;
    std::size_t size() const { return values_.size(); }
    /// Canonical name (labels sorted) to value.
    const std::map<std::string, double>& all() const { return values_; }

  private:
    std::map<std::string, double> values_;
};

}  // namespace noren::metrics::test
