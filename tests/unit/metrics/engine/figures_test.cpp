// Pages as the engines write them, cut down to what matters and some of what does not.

#include "metrics/engine/figures.hpp"

#include <string>

#include <catch2/catch.hpp>

namespace noren::metrics::engine {
namespace {

struct Expected {
    std::string_view engine;
    std::optional<double> queued = {}, running = {}, kv = {}, queries = {}, hits = {};
};

void check(const std::string& page, const Expected& expected) {
    const Figures figures = read_figures(page);
    CHECK(figures.engine == expected.engine);
    CHECK(figures[Figure::queued] == expected.queued);
    CHECK(figures[Figure::running] == expected.running);
    CHECK(figures[Figure::prefix_cache_queries] == expected.queries);
    CHECK(figures[Figure::prefix_cache_hits] == expected.hits);
    REQUIRE(figures[Figure::kv_cache_usage].has_value() == expected.kv.has_value());
    if (expected.kv) CHECK(*figures[Figure::kv_cache_usage] == Approx(*expected.kv));
}

}  // namespace

TEST_CASE("vLLM: counts are added up over its engines, the cache usage is their mean") {
    check(R"(# HELP python_info Python platform information
# TYPE python_info gauge
python_info{implementation="CPython",major="3",minor="12"} 1.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 12.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3-8B"} 11.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-8B"} 3.0
vllm:num_requests_waiting{engine="1",model_name="Qwen/Qwen3-8B"} 0.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="Qwen/Qwen3-8B",reason="capacity"} 3.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-8B"} 0.6
vllm:kv_cache_usage_perc{engine="1",model_name="Qwen/Qwen3-8B"} 0.4
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="Qwen/Qwen3-8B"} 1.25e+06
vllm:prefix_cache_queries_total{engine="1",model_name="Qwen/Qwen3-8B"} 250000.0
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="Qwen/Qwen3-8B"} 1.7e+09
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="Qwen/Qwen3-8B"} 500000.0
vllm:prefix_cache_hits_total{engine="1",model_name="Qwen/Qwen3-8B"} 0.0
)",
          {"vllm", 3, 23, 0.5, 1.5e6, 5e5});
}

TEST_CASE("vLLM before its V1: the older names of the caches") {
    check(R"(vllm:num_requests_running{model_name="m"} 1.0
vllm:num_requests_swapped{model_name="m"} 0.0
vllm:num_requests_waiting{model_name="m"} 0.0
vllm:gpu_cache_usage_perc{model_name="m"} 0.25
vllm:gpu_prefix_cache_queries_total{model_name="m"} 10
vllm:gpu_prefix_cache_hits_total{model_name="m"} 4
)",
          {"vllm", 0, 1, 0.25, 10, 4});
}

TEST_CASE("vLLM between the two: both names for the cache are no second cache") {
    check(R"(vllm:num_requests_waiting{engine="0"} 2.0
vllm:gpu_cache_usage_perc{engine="0"} 0.75
vllm:kv_cache_usage_perc{engine="0"} 0.5
)",
          {"vllm", 2, {}, 0.5});
}

TEST_CASE("SGLang: ranks that share requests tell of them once each, replicas of their own") {
    check(R"(# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 8.0
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 8.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 5.0
sglang:num_running_reqs{dp_rank="1",engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 4.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 2.0
sglang:num_queue_reqs{dp_rank="0",engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 2.0
sglang:num_grammar_queue_reqs{dp_rank="0",model_name="m",tp_rank="0"} 9.0
# TYPE sglang:token_usage gauge
sglang:token_usage{dp_rank="0",model_name="m",tp_rank="0"} 0.9
sglang:token_usage{dp_rank="1",model_name="m",tp_rank="0"} 0.5
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 9000.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 3000.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 500.0
)",
          {"sglang", 2, 13, 0.7, 9000, 3500});
}

TEST_CASE("SGLang with priorities: the total stands beside its parts") {
    check(R"(sglang:num_queue_reqs{model_name="m",priority=""} 5.0
sglang:num_queue_reqs{model_name="m",priority="0"} 3.0
sglang:num_queue_reqs{model_name="m",priority="10"} 2.0
sglang:num_running_reqs{model_name="m",priority=""} 7.0
sglang:num_running_reqs{model_name="m",priority="0"} 7.0
)",
          {"sglang", 5, 7});
}

TEST_CASE("TGI says nothing of its caches") {
    check(R"(# TYPE tgi_queue_size gauge
tgi_queue_size 4

# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 16

# TYPE tgi_request_duration histogram
tgi_request_duration_bucket{le="0.001"} 0
tgi_request_duration_bucket{le="+Inf"} 3
tgi_request_duration_sum 2.5
tgi_request_duration_count 3
)",
          {"tgi", 4, 16});
}

TEST_CASE("llama.cpp, with the gauge of its cache and without") {
    const std::string page = R"(# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 96641
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 2
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 1
)";
    check(page, {"llama.cpp", 1, 2});
    check(page + "llamacpp:kv_cache_usage_ratio 0.125\n", {"llama.cpp", 1, 2, 0.125});
}

TEST_CASE("TensorRT-LLM: a lookup is a reused block or a missed one") {
    const std::string page = R"(trtllm_num_requests_waiting{engine_type="trtllm",model_name="m"} 6.0
trtllm_num_requests_running{engine_type="trtllm",model_name="m"} 32.0
trtllm_kv_cache_utilization{engine_type="trtllm",model_name="m"} 0.5
trtllm_kv_cache_hit_rate{engine_type="trtllm",model_name="m"} 0.25
trtllm_kv_cache_reused_blocks_total{engine_type="trtllm",model_name="m"} 100.0
)";
    check(page + "trtllm_kv_cache_missed_blocks_total{engine_type=\"trtllm\",model_name=\"m\"} 300.0\n",
          {"tensorrt-llm", 6, 32, 0.5, 400, 100});
    check(page, {"tensorrt-llm", 6, 32, 0.5, {}, 100});
}

TEST_CASE("Triton: figures are told apart by a label; the sum goes over its models") {
    check(R"(# HELP nv_inference_request_success Number of successful inference requests, all batch sizes
# TYPE nv_inference_request_success counter
nv_inference_request_success{model="ensemble",version="1"} 5.000000
# HELP nv_trt_llm_request_metrics TRT LLM request metrics
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 2
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 7
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="active",version="1"} 9
nv_trt_llm_request_metrics{model="second",request_type="scheduled",version="1"} 1
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.375
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 2340
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max",model="tensorrt_llm",version="1"} 6239
)",
          {"triton", 2, 8, 0.375});
}

TEST_CASE("of an unknown engine nothing is claimed") {
    check("", {""});
    check("<html><body>404 page not found</body></html>", {""});
    check(R"({"iter": 5, "numActiveRequests": 3})", {""});
    check("process_open_fds 12\nollama_requests_total 3\nvllm:prompt_tokens_total 5\n", {""});
    check("noren_queued_requests 3\nnum_requests_waiting 4\nvllm:num_requests_waiting_total 4\n", {""});
}

TEST_CASE("what cannot be is not told") {
    check("tgi_queue_size -1\ntgi_batch_current_size 2\n", {"tgi", {}, 2});
    check("tgi_queue_size NaN\ntgi_batch_current_size +Inf\n", {""});
    check("vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc 57.5\n", {"vllm", 1});
    check("vllm:num_requests_waiting{ 1\nvllm:num_requests_running 1 1 1\n", {""});
    check("llamacpp:requests_deferred 1\nllamacpp:kv_cache_usage_ratio nan\n", {"llama.cpp", 1});
}

TEST_CASE("on a page of two engines the one that says most is meant") {
    check(R"(nv_trt_llm_request_metrics{request_type="waiting"} 2
vllm:num_requests_waiting 5
vllm:num_requests_running 6
)",
          {"vllm", 5, 6});
}

TEST_CASE("which samples tell a figure") {
    PageReader reader(
        "nv_trt_llm_request_metrics{request_type=\"waiting\"} 2\n"
        "nv_trt_llm_request_metrics{request_type=\"scheduled\"} 2\n"
        "sglang:num_queue_reqs{priority=\"1\"} 2\n");
    const auto waiting = reader.next();
    const auto scheduled = reader.next();
    const auto part = reader.next();
    CHECK(tells(*waiting, "triton", Figure::queued));
    CHECK_FALSE(tells(*waiting, "triton", Figure::running));
    CHECK_FALSE(tells(*waiting, "vllm", Figure::queued));
    CHECK(tells(*scheduled, "triton", Figure::running));
    CHECK_FALSE(tells(*part, "sglang", Figure::queued));
}

}  // namespace noren::metrics::engine
