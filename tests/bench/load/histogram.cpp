#include "tests/bench/load/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace load {

std::size_t Histogram::bucket_of(std::uint64_t value) {
    value = std::min(value, (std::uint64_t{1} << k_most_bits) - 1);
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    if (width <= k_bits) return static_cast<std::size_t>(value);  // one bucket per nanosecond
    const unsigned shift = width - k_bits - 1;
    // The top bit picks the doubling, the k_bits below it the bucket in it.
    return (static_cast<std::size_t>(shift + 1) << k_bits) +
           static_cast<std::size_t>((value >> shift) - (1U << k_bits));
}

double Histogram::middle_of(std::size_t bucket) {
    const std::size_t doubling = bucket >> k_bits;
    if (doubling == 0) return static_cast<double>(bucket);
    const double width = std::ldexp(1.0, static_cast<int>(doubling) - 1);
    const double from = static_cast<double>((bucket & ((1U << k_bits) - 1)) + (1U << k_bits)) * width;
    return from + (width - 1) / 2;
}

void Histogram::add(std::uint64_t nanoseconds, std::uint64_t times) {
    if (times == 0) return;
    buckets_[bucket_of(nanoseconds)] += times;
    count_ += times;
    sum_ += static_cast<double>(nanoseconds) * static_cast<double>(times);
    least_ = std::min(least_, nanoseconds);
    most_ = std::max(most_, nanoseconds);
}

void Histogram::merge(const Histogram& other) {
    for (std::size_t i = 0; i < k_buckets; ++i)
        buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    least_ = std::min(least_, other.least_);
    most_ = std::max(most_, other.most_);
}

double Histogram::mean() const {
    return count_ == 0 ? 0 : sum_ / static_cast<double>(count_) * 1e-9;
}

double Histogram::least() const {
    return count_ == 0 ? 0 : static_cast<double>(least_) * 1e-9;
}

double Histogram::most() const {
    return static_cast<double>(most_) * 1e-9;
}

double Histogram::quantile(double q) const {
    if (count_ == 0) return 0;
    const double rank = std::max(1.0, std::ceil(q * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < k_buckets; ++i) {
        seen += buckets_[i];
        // The extremes are known better than their buckets' middles.
        if (static_cast<double>(seen) >= rank)
            return std::clamp(middle_of(i), static_cast<double>(least_), static_cast<double>(most_)) * 1e-9;
    }
    return most();
}

}  // namespace load
