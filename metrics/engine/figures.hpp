#pragma once
// What inference engines tell of themselves, each under names of its own, under one name each.

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "metrics/engine/page_reader.hpp"

namespace noren::metrics::engine {

enum class Figure : unsigned char {
    queued,
    running,
    kv_cache_usage,
    prefix_cache_queries,
    prefix_cache_hits
};
inline constexpr std::size_t k_figures = 5;

inline constexpr std::array<std::string_view, 6> k_engine_names = {"vllm",      "sglang",       "tgi",
                                                                   "llama.cpp", "tensorrt-llm", "triton"};

/// Of all replicas and models that share the page: counts are added up, the usage of the KV cache (0..1) is
/// the mean. Absent: the page does not say, or says what cannot be.
struct Figures {
    std::string_view
        engine;  ///< one of k_engine_names; empty: the page is of none of them, nothing is claimed
    std::array<std::optional<double>, k_figures> values{};

    const std::optional<double>& operator[](Figure figure) const {
        return values[static_cast<std::size_t>(figure)];
    }
};

Figures read_figures(std::string_view page);

/// Whether the sample is one of those that the figure of that engine is read from.
bool tells(const Line& sample, std::string_view engine, Figure figure);

}  // namespace noren::metrics::engine
