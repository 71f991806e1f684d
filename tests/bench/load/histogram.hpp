#pragma once
// Durations by the million in little memory.

#include <array>
#include <cstdint>

namespace load {

/// Log-linear histogram of durations (the idea of HdrHistogram, Gil Tene): 128 buckets for every doubling, so
/// a quantile is at most 0.4 % from the exact one (half a bucket, its middle is told). Count, sum, least and
/// most are exact. Nanoseconds, 0 to 2^40 (18 minutes); longer ones fall into the last bucket.
class Histogram {
  public:
    void add(std::uint64_t nanoseconds, std::uint64_t times = 1);
    void merge(const Histogram& other);

    std::uint64_t count() const { return count_; }
    /// Seconds, as all below; of nothing: 0.
    double mean() const;
    double least() const;
    double most() const;
    /// Nearest rank, q in [0, 1].
    double quantile(double q) const;

  private:
    static constexpr unsigned k_bits = 7;
    static constexpr unsigned k_most_bits = 40;
    static constexpr std::size_t k_buckets = (k_most_bits - k_bits + 1) << k_bits;

    static std::size_t bucket_of(std::uint64_t value);
    static double middle_of(std::size_t bucket);

    std::array<std::uint64_t, k_buckets> buckets_{};
    std::uint64_t count_ = 0, least_ = UINT64_MAX, most_ = 0;
    double sum_ = 0;
};

/// Of the token events of many streams.
struct EventTimes {
    Histogram gaps;    ///< between two of one stream
    Histogram delays;  ///< from the engine's write to the client's read, of stamped ones
};

}  // namespace load
