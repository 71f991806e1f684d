#pragma once
// Metrics with one name, and all of them together.

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/labels.h>
#include <prometheus/metric_family.h>

namespace noren::metrics {

/// The series of one name, told apart by their labels. Thread-safe; the lock is only ever held for a moment:
/// a series is made before it is taken, and all are read after it was given back.
template <typename Metric>
class Family final : public prometheus::Collectable {
  public:
    Family(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}

    /// labels: of no series that is there yet. arguments: of the metric's constructor. It lives as long as
    /// the family. Named like the library's own, as in histogram.hpp.
    template <typename... Arguments>
    Metric& Add(const prometheus::Labels& labels, Arguments&&... arguments) {
        auto series = std::make_unique<Series>(std::forward<Arguments>(arguments)...);
        for (const auto& [label, value] : labels)
            series->labels.push_back({label, value});
        const std::lock_guard lock(mutex_);
        return series_.emplace_back(std::move(series))->metric;
    }

    std::vector<prometheus::MetricFamily> Collect() const override {
        prometheus::MetricFamily family{name_, help_, Metric::metric_type, {}};
        for (const Series* series : all()) {
            family.metric.push_back(series->metric.Collect());
            family.metric.back().label = series->labels;
        }
        return {std::move(family)};
    }

  private:
    struct Series {
        template <typename... Arguments>
        explicit Series(Arguments&&... arguments) : metric(std::forward<Arguments>(arguments)...) {}
        Metric metric;
        std::vector<prometheus::ClientMetric::Label> labels;
    };

    std::vector<const Series*> all() const {
        std::vector<const Series*> all;
        const std::lock_guard lock(mutex_);
        all.reserve(series_.size());
        for (const auto& series : series_)
            all.push_back(series.get());
        return all;
    }

    std::string name_, help_;
    mutable std::mutex mutex_;
    std::vector<std::unique_ptr<Series>> series_;
};

/// Families are added while one thread knows of it, and read by any.
class Registry {
  public:
    template <typename Metric>
    Family<Metric>& add(const char* name, const char* help) {
        auto family = std::make_unique<Family<Metric>>(name, help);
        Family<Metric>& added = *family;
        families_.push_back(std::move(family));
        return added;
    }

    const std::vector<std::unique_ptr<prometheus::Collectable>>& families() const { return families_; }

  private:
    std::vector<std::unique_ptr<prometheus::Collectable>> families_;
};

}  // namespace noren::metrics
