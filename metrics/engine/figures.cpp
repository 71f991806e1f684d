#include "metrics/engine/figures.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace noren::metrics::engine {
namespace {

/// Where an engine tells a figure. Of several lines for the same figure the first one that is on the page
/// counts: names have changed between versions.
struct Source {
    std::string_view engine;
    Figure figure;
    std::string_view series;
    std::string_view label = {};  ///< set: only series whose label has the value
    std::string_view value = {};
    std::string_view plus = {};  ///< set: another series to be added, without which there is no figure
};

constexpr std::string_view k_triton_requests = "nv_trt_llm_request_metrics";
constexpr std::string_view k_triton_kv = "nv_trt_llm_kv_cache_block_metrics";

// The caches count in tokens (vLLM, SGLang) or blocks (TensorRT-LLM): their ratio compares, they do not.
constexpr std::array<Source, 26> k_sources = {{
    {"vllm", Figure::queued, "vllm:num_requests_waiting"},
    {"vllm", Figure::running, "vllm:num_requests_running"},
    {"vllm", Figure::kv_cache_usage, "vllm:kv_cache_usage_perc"},
    {"vllm", Figure::kv_cache_usage, "vllm:gpu_cache_usage_perc"},
    {"vllm", Figure::prefix_cache_queries, "vllm:prefix_cache_queries_total"},
    {"vllm", Figure::prefix_cache_queries, "vllm:gpu_prefix_cache_queries_total"},
    {"vllm", Figure::prefix_cache_hits, "vllm:prefix_cache_hits_total"},
    {"vllm", Figure::prefix_cache_hits, "vllm:gpu_prefix_cache_hits_total"},
    {"sglang", Figure::queued, "sglang:num_queue_reqs"},
    {"sglang", Figure::running, "sglang:num_running_reqs"},
    {"sglang", Figure::kv_cache_usage, "sglang:token_usage"},
    {"sglang", Figure::prefix_cache_queries, "sglang:prompt_tokens_total"},
    {"sglang", Figure::prefix_cache_hits, "sglang:cached_tokens_total"},
    {"tgi", Figure::queued, "tgi_queue_size"},
    {"tgi", Figure::running, "tgi_batch_current_size"},
    {"llama.cpp", Figure::queued, "llamacpp:requests_deferred"},
    {"llama.cpp", Figure::running, "llamacpp:requests_processing"},
    {"llama.cpp", Figure::kv_cache_usage, "llamacpp:kv_cache_usage_ratio"},
    {"tensorrt-llm", Figure::queued, "trtllm_num_requests_waiting"},
    {"tensorrt-llm", Figure::running, "trtllm_num_requests_running"},
    {"tensorrt-llm", Figure::kv_cache_usage, "trtllm_kv_cache_utilization"},
    {"tensorrt-llm",
     Figure::prefix_cache_queries,
     "trtllm_kv_cache_reused_blocks_total",
     {},
     {},
     "trtllm_kv_cache_missed_blocks_total"},
    {"tensorrt-llm", Figure::prefix_cache_hits, "trtllm_kv_cache_reused_blocks_total"},
    {"triton", Figure::queued, k_triton_requests, "request_type", "waiting"},
    {"triton", Figure::running, k_triton_requests, "request_type", "scheduled"},
    {"triton", Figure::kv_cache_usage, k_triton_kv, "kv_cache_block_type", "fraction"},
}};

// SGLang: the ranks that share a request tell of it once each (--enable-metrics-for-all-schedulers).
constexpr std::array<std::string_view, 3> k_rank_labels = {"tp_rank", "pp_rank", "moe_ep_rank"};
// SGLang: a total without this label, and what it is made of with it.
constexpr std::string_view k_part_label = "priority";

bool is_rank(std::string_view name) {
    return std::find(k_rank_labels.begin(), k_rank_labels.end(), name) != k_rank_labels.end();
}

/// What the series of all ranks of one replica have in common.
std::string replica_of(std::string_view labels) {
    std::string replica;
    LabelReader reader(labels);
    while (const auto label = reader.next())
        if (!is_rank(label->name))
            replica.append(label->name).append("=\"").append(label->value).append("\",");
    return replica;
}

/// One figure as far as it has been read: by replica, the highest of its ranks.
using Replicas = std::map<std::string, double>;

bool is_of(const Line& sample, const Source& source) {
    return sample.name == source.series && label_value(sample.labels, k_part_label).empty() &&
           (source.label.empty() || label_value(sample.labels, source.label) == source.value);
}

void add(Replicas& replicas, const Line& sample) {
    if (!std::isfinite(sample.number) || sample.number < 0) return;
    double& value = replicas[replica_of(sample.labels)];
    value = std::max(value, sample.number);
}

std::optional<double> sum(const Replicas& replicas) {
    if (replicas.empty()) return std::nullopt;
    double total = 0;
    for (const auto& [replica, value] : replicas)
        total += value;
    return total;
}

std::optional<double> mean_ratio(const Replicas& replicas) {
    const auto total = sum(replicas);
    if (!total) return std::nullopt;
    const double mean = *total / static_cast<double>(replicas.size());
    return mean <= 1 ? std::optional(mean) : std::nullopt;
}

/// What one pass over a page has found, source by source.
struct Findings {
    std::array<Replicas, k_sources.size()> found;
    std::array<Replicas, k_sources.size()> plus;

    std::optional<double> figure_at(std::size_t i) const {
        const Source& source = k_sources[i];
        if (source.figure == Figure::kv_cache_usage) return mean_ratio(found[i]);
        const auto figure = sum(found[i]);
        if (source.plus.empty() || !figure) return figure;
        const auto rest = sum(plus[i]);
        return rest ? std::optional(*figure + *rest) : std::nullopt;
    }
};

Findings find_sources(std::string_view page) {
    Findings findings;
    PageReader reader(page);
    while (const auto line = reader.next()) {
        if (line->kind != Line::Kind::sample) continue;
        for (std::size_t i = 0; i < k_sources.size(); ++i) {
            if (is_of(*line, k_sources[i])) add(findings.found[i], *line);
            if (!k_sources[i].plus.empty() && line->name == k_sources[i].plus) add(findings.plus[i], *line);
        }
    }
    return findings;
}

Figures figures_of(std::string_view engine, const Findings& findings) {
    Figures figures{engine, {}};
    for (std::size_t i = 0; i < k_sources.size(); ++i) {
        auto& value = figures.values[static_cast<std::size_t>(k_sources[i].figure)];
        if (k_sources[i].engine == engine && !value) value = findings.figure_at(i);
    }
    return figures;
}

std::ptrdiff_t known(const Figures& figures) {
    return std::count_if(figures.values.begin(), figures.values.end(),
                         [](const auto& value) { return value.has_value(); });
}

}  // namespace

/// Triton serves other engines' models too, whose figures are then on its page: the engine that says most is
/// the one that is meant.
Figures read_figures(std::string_view page) {
    const Findings findings = find_sources(page);
    Figures best;
    for (const std::string_view engine : k_engine_names) {
        const Figures figures = figures_of(engine, findings);
        if (known(figures) > known(best)) best = figures;
    }
    return best;
}

bool tells(const Line& sample, std::string_view engine, Figure figure) {
    return std::any_of(k_sources.begin(), k_sources.end(), [&](const Source& source) {
        return source.engine == engine && source.figure == figure && is_of(sample, source);
    });
}

}  // namespace noren::metrics::engine
