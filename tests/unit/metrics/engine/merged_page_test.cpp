#include "metrics/engine/merged_page.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace noren::metrics::engine {
namespace {

const std::string k_own =
    "# HELP noren_up 1 if so\n# TYPE noren_up gauge\nnoren_up 1\n"
    "# HELP process_open_fds Number of open file descriptors.\n# TYPE process_open_fds gauge\n"
    "process_open_fds 12\n"
    "# HELP took_seconds h\n# TYPE took_seconds histogram\ntook_seconds_bucket{le=\"+Inf\"} 1\n"
    "took_seconds_sum 2\ntook_seconds_count 1\n";

/// What was appended.
std::string appended(const std::string& page, std::optional<double> queue = {}) {
    std::string merged = k_own;
    append_page(merged, page, queue);
    REQUIRE(merged.starts_with(k_own));
    return merged.substr(k_own.size());
}

const std::string k_waiting =
    "# HELP vllm:num_requests_waiting Waiting.\n# TYPE vllm:num_requests_waiting gauge\n"
    "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 3.0\n"
    "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4.0\n";

}  // namespace

TEST_CASE("whole families are taken as they stand") {
    const std::string page = k_waiting +
                             "# HELP vllm:e2e_request_latency_seconds h\n"
                             "# TYPE vllm:e2e_request_latency_seconds histogram\n"
                             "vllm:e2e_request_latency_seconds_bucket{le=\"0.3\"} 1.0\n"
                             "vllm:e2e_request_latency_seconds_bucket{le=\"+Inf\"} 2.0\n"
                             "vllm:e2e_request_latency_seconds_sum 1.5\n"
                             "vllm:e2e_request_latency_seconds_count 2.0\n"
                             "# TYPE rpc_seconds summary\n"
                             "rpc_seconds{quantile=\"0.5\"} NaN\nrpc_seconds_sum 0\nrpc_seconds_count 0\n"
                             "untyped_thing{a=\"b\"} 5 1700000000000\n";
    CHECK(appended(page) == page);
    CHECK(appended("").empty());
}

TEST_CASE("noren's own families stay, the engine's of the same name are left out") {
    CHECK(appended("# HELP process_open_fds Number of open file descriptors.\n"
                   "# TYPE process_open_fds gauge\nprocess_open_fds 99.0\nleft 1\n") == "left 1\n");
    CHECK(appended("noren_up 0\n").empty());
    CHECK(appended("# TYPE noren_up counter\nnoren_up 0\n").empty());
    // A name that a histogram of noren's has taken, and a histogram that would take one of noren's.
    CHECK(appended("took_seconds_count 7\n").empty());
    CHECK(appended("# TYPE noren summary\nnoren_sum 1\nnoren_count 1\n") ==
          "# TYPE noren summary\nnoren_sum 1\nnoren_count 1\n");
    CHECK(appended("# TYPE noren_up summary\nnoren_up_sum 1\nnoren_up_count 1\nb 1\n") == "b 1\n");
    CHECK(appended("# TYPE took summary\ntook_seconds 1\n").empty());
    CHECK(appended("a_count 1\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_count 1\n") == "a_count 1\n");
}

TEST_CASE("a family comes once, and its type before its samples") {
    CHECK(appended("a 1\nb 2\na 3\n") == "a 1\nb 2\n");
    CHECK(appended("# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na{x=\"y\"} 2\n") ==
          "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n");
    CHECK(appended("a 1\n# TYPE a gauge\na{x=\"y\"} 2\n") == "a 1\na{x=\"y\"} 2\n");
    CHECK(appended("# TYPE a gauge\n# TYPE a counter\n# HELP a b\n# HELP a c\na 1\n") ==
          "# TYPE a gauge\n# HELP a b\na 1\n");
    CHECK(appended("# HELP a nothing follows\n# TYPE a gauge\n").empty());
}

TEST_CASE("lines that are no text format are left out") {
    CHECK(appended("<html>\na 1\na{x=\"1\n{\"a\":1}\nb 2\r\n# EOF\n\n  c 3\n") == "a 1\nb 2\nc 3\n");
    CHECK(appended("# TYPE a histogram\na 1\na_bucket 1\na_bucket{le=\"x\"} 1\na_bucket{le=\"1\"} 1\n") ==
          "# TYPE a histogram\na_bucket{le=\"1\"} 1\n");
    CHECK(appended("# TYPE a summary\na 1\na{quantile=\"0.9\"} 1\n") ==
          "# TYPE a summary\na{quantile=\"0.9\"} 1\n");
    CHECK(appended("last_line_without_end 1") == "last_line_without_end 1\n");
}

TEST_CASE("noren's queue goes on top of the engine's, once") {
    CHECK(appended(k_waiting, 10) ==
          "# HELP vllm:num_requests_waiting Waiting.\n# TYPE vllm:num_requests_waiting gauge\n"
          "vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} 13\n"
          "vllm:num_requests_waiting{engine=\"1\",model_name=\"m\"} 4.0\n");
    CHECK(appended(k_waiting, 0).find("model_name=\"m\"} 3\n") != std::string::npos);
    CHECK(appended("tgi_queue_size 1 1700000000000\n", 2) == "tgi_queue_size 3 1700000000000\n");
    CHECK(appended("tgi_queue_size NaN\ntgi_batch_current_size 1\n", 2) ==
          "tgi_queue_size NaN\ntgi_batch_current_size 1\n");
    CHECK(appended("nv_trt_llm_request_metrics{request_type=\"scheduled\"} 1\n"
                   "nv_trt_llm_request_metrics{request_type=\"waiting\"} 1.5\n",
                   2) ==
          "nv_trt_llm_request_metrics{request_type=\"scheduled\"} 1\n"
          "nv_trt_llm_request_metrics{request_type=\"waiting\"} 3.5\n");
    CHECK(appended("some_queue 1\n", 2) == "some_queue 1\n");
}

}  // namespace noren::metrics::engine
