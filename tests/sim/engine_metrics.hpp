#pragma once
// The simulated engine's own /metrics, under vLLM's names, as an autoscaler or a scraping proxy expects them.

#include <array>
#include <cstdint>
#include <string>

#include "tests/sim/truth.hpp"

namespace sim {

/// What is sampled when the page is asked for.
struct EngineGauges {
    std::size_t running = 0;
    std::size_t waiting = 0;
    double kv_usage = 0;  ///< 0..1
};

/// Engine thread only.
class EngineMetrics {
  public:
    explicit EngineMetrics(std::string model) : model_(std::move(model)) {}

    /// A request has left the engine, however.
    void record(const Truth& truth);

    /// Prometheus text format 0.0.4.
    std::string page(const EngineGauges& gauges) const;

  private:
    struct Histogram {
        static constexpr std::array<double, 18> k_bounds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06,
                                                            0.08,  0.1,   0.25, 0.5,  0.75, 1.0,
                                                            2.5,   5.0,   7.5,  10.0, 20.0, 60.0};
        std::array<std::uint64_t, k_bounds.size() + 1> counts{};
        double sum = 0;
        void observe(double seconds);
    };

    void add_histogram(std::string& out, std::string_view name, std::string_view help,
                       const Histogram& h) const;
    void add_value(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                   const std::string& value) const;

    std::string model_;
    std::uint64_t prompt_tokens_ = 0;
    std::uint64_t generation_tokens_ = 0;
    std::uint64_t stopped_ = 0;  // finished_reason "stop" and "length" together are complete answers
    std::uint64_t aborted_ = 0;
    Histogram first_token_;
    Histogram inter_token_;
    Histogram whole_;
    Histogram queued_;
};

}  // namespace sim
