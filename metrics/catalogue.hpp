#pragma once
// Every metric family of noren: its name, its one definition as help text, its labels and its buckets. What
// is not listed here does not exist; what is listed is there, at 0, before the first request.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include "metrics/exchange_meter.hpp"
#include "metrics/family.hpp"
#include "metrics/histogram.hpp"

namespace noren::metrics {

namespace buckets {
/// Narrow enough that p50 to p99 of log-normal latencies are within a few percent; they contain every
/// OpenTelemetry bound in range, so that shared bounds compare with an engine's own histograms.
Buckets ttft();
/// From 0.5 ms, where OpenTelemetry's start at 10 ms: a fast decode step is 3 ms.
Buckets itl();
Buckets duration();
/// A stage may be a fraction of a millisecond (queue, connect) or most of a long answer (decode).
Buckets stage();
/// As fine as those of the time to first token, of which the wait is a part.
Buckets queue();
Buckets connect();
Buckets overhead();
/// Ten to twenty percent apart where people read along: the decision about a limit hangs on it.
Buckets tokens_per_second();
Buckets token_count();
}  // namespace buckets

inline constexpr std::array<std::string_view, 7> k_endpoint_names = {
    "chat_completions", "completions", "responses", "messages", "embeddings", "rerank", "passthrough"};
inline constexpr std::array<std::string_view, 7> k_outcome_names = {
    "ok", "client_closed", "rejected", "timeout", "upstream_error", "bad_request", "internal_error"};
inline constexpr std::array<std::string_view, 5> k_phase_names = {"upload", "queued", "connect", "prefill",
                                                                  "decode"};
inline constexpr std::array<std::string_view, 6> k_finish_reasons = {"stop",           "length", "tool_calls",
                                                                     "content_filter", "other",  "none"};
/// How noren_request_duration_seconds folds the outcomes.
enum class Folded : unsigned char { ok, error, cancelled };
inline constexpr std::array<std::string_view, 3> k_folded_names = {"ok", "error", "cancelled"};
/// Words of x-noren-reason (the proxy's Reason), as labels.
inline constexpr std::array<std::string_view, 17> k_failure_reasons = {
    "client_closed",     "bad_request",      "head_timeout",  "body_timeout",   "body_too_large",
    "stall_timeout",     "queue_full",       "queue_timeout", "draining",       "total_timeout",
    "tunnel_timeout",    "upstream_connect", "upstream_tls",  "upstream_reset", "upstream_timeout",
    "upstream_protocol", "internal_error"};

inline std::string_view name_of(ApiEndpoint e) {
    return k_endpoint_names[static_cast<std::size_t>(e)];
}
inline std::string_view name_of(Outcome o) {
    return k_outcome_names[static_cast<std::size_t>(o)];
}
inline std::string_view name_of(Phase p) {
    return k_phase_names[static_cast<std::size_t>(p)];
}

using CounterFamily = Family<prometheus::Counter>;
using HistogramFamily = Family<Histogram>;

/// The families with a series per model.
struct ModelFamilies {
    explicit ModelFamilies(Registry& registry);

    CounterFamily& requests;
    HistogramFamily& duration;
    HistogramFamily& ttft;
    HistogramFamily& upstream_ttft;
    HistogramFamily& itl;
    HistogramFamily& tpot;
    HistogramFamily& tps;
    HistogramFamily& request_prompt_tokens;
    HistogramFamily& request_output_tokens;
    CounterFamily& prompt_tokens;
    CounterFamily& prompt_cached_tokens;
    CounterFamily& output_tokens;
    CounterFamily& reasoning_tokens;
    CounterFamily& finish_reasons;
};

/// The counters of one family with one label of few, known values, all there from the start.
class CounterSet {
  public:
    /// values: of static storage.
    CounterSet(CounterFamily& family, const char* label, std::vector<std::string_view> values);

    /// A value that is not in the set (the empty one, say) is not counted.
    void add(std::string_view value, double by = 1);
    /// So far; 0 for a value that is not in the set.
    double count(std::string_view value) const;

  private:
    prometheus::Counter* find(std::string_view value) const;

    std::vector<std::string_view> values_;
    std::vector<prometheus::Counter*> counters_;
};

/// Series of the whole process, each resolved once.
struct ProcessWide {
    explicit ProcessWide(Registry& registry);

    Histogram& queue_wait;
    Histogram& proxy_overhead;
    Histogram& connect;
    Histogram& write_stall;
    std::array<Histogram*, k_stage_count> stages{};
    prometheus::Gauge& inflight;
    prometheus::Gauge& tunnels;
    prometheus::Gauge& awaiting_first_token;
    prometheus::Gauge& stalled;
    CounterSet disconnects;          ///< by phase
    CounterSet connections_refused;  ///< by reason
    CounterSet upgrades;             ///< by protocol
    CounterSet failures;             ///< by reason
    CounterSet rejections;           ///< by reason
    CounterSet upstream_errors;      ///< by reason
    CounterSet upstream_connects;    ///< by result
    CounterSet received_bytes;       ///< by side
    CounterSet sent_bytes;           ///< by side
    prometheus::Counter& parse_errors;
    CounterSet unobserved;  ///< by reason
    prometheus::Counter& model_overflow;
    prometheus::Gauge& reload_ok;
    prometheus::Gauge& reload_time;
    CounterSet reloads;  ///< by result
    prometheus::Gauge& restart_required;
    CounterSet tls_handshakes;  ///< by result
    CounterSet tls_reloads;     ///< by result
    CounterSet page_fetches;    ///< by result
    prometheus::Counter& page_shares;
};

}  // namespace noren::metrics
