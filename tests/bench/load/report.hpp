#pragma once
// A run's results as a table for people and as JSON for programs.

#include <iosfwd>
#include <string>
#include <vector>

#include "tests/bench/load/options.hpp"
#include "tests/bench/load/runner.hpp"

namespace load {

/// One url in one stage.
struct Part {
    std::size_t stage = 0, target = 0;
    Summary summary;
};

/// Stage by stage, in each url by url.
std::vector<Part> parts_of(const Options& options, const Outcome& outcome);

void print_table(const Options& options, const Outcome& outcome, std::ostream& out);

/// One object on one line. Names and units are stable:
///   urls, labels, api, stream, seed, missed, interrupted, lateness_seconds
///   runs[], one for each url in each stage:
///     label, url, stage, connections (0 = open loop), seconds, requests, ok, checked, body_checked, refused,
///     failed, left, slow, retried, requests_per_second, output_tokens, output_tokens_per_second,
///     effective_tokens_per_second, body_bytes, bytes_altered, bytes_lost, bytes_extra, statuses{}, errors{},
///     reasons{}, and distributions {count, mean, min, p01, p10, p50, p90, p99, max}: ttft_seconds,
///     tpot_seconds, itl_seconds, delay_seconds, tps, e2e_seconds, retry_after_seconds.
std::string to_json(const Options& options, const Outcome& outcome);

/// One JSON line per request, times in nanoseconds of CLOCK_MONOTONIC.
void write_per_request(const Options& options, const Outcome& outcome, std::ostream& out);

}  // namespace load
