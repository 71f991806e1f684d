// What the engine serves besides the APIs.

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/sim/token_text.hpp"
#include "tests/sim/unit/client.hpp"
#include "tests/sim/unit/test_engine.hpp"

using namespace sim;
using namespace sim::test;
using namespace std::chrono_literals;

TEST_CASE("pages") {
    TestEngine engine;
    CHECK(engine.ask(get("/health")).body.empty());
    const auto models = boost::json::parse(engine.ask(get("/v1/models")).body);
    CHECK(models.at("data").as_array()[0].at("id").as_string() == "sim-7b");
    CHECK(engine.ask("HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
              .head.starts_with("HTTP/1.1 200"));

    CHECK(engine.ask(chat("x-sim-usage: on\r\n")).whole);
    engine.truth();
    const std::string page = engine.ask(get("/metrics")).body;
    CHECK(page.find("vllm:generation_tokens_total{engine=\"0\",model_name=\"sim-7b\"} 4\n") !=
          std::string::npos);
    CHECK(page.find("vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"sim-7b\"} 1\n") !=
          std::string::npos);
    CHECK(page.find("vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"sim-7b\"} 3\n") !=
          std::string::npos);
    CHECK(page.find("vllm:num_requests_running{engine=\"0\",model_name=\"sim-7b\"} 0\n") !=
          std::string::npos);

    const Reply truth = engine.ask(get("/sim/truth"));
    CHECK(boost::json::parse(truth.body.substr(0, truth.body.find('\n'))).at("output_tokens").as_int64() ==
          4);
    const auto state = boost::json::parse(engine.ask(get("/sim/state")).body);
    CHECK(state.at("complete").as_int64() == 1);
}

TEST_CASE("running and waiting requests show on the metrics page") {
    Options options;
    options.gpu.max_batch = 1;
    TestEngine engine(options);
    Client running(engine.port());
    running.send(chat("x-sim-tokens: 20000\r\n"));
    REQUIRE(running.read_until("data: "));
    Client waiting(engine.port());
    waiting.send(chat());
    REQUIRE(waiting.read_until("\r\n\r\n"));  // its head comes at once, its tokens do not
    const std::string page = engine.ask(get("/metrics")).body;
    CHECK(page.find("vllm:num_requests_running{engine=\"0\",model_name=\"sim-7b\"} 1\n") !=
          std::string::npos);
    CHECK(page.find("vllm:num_requests_waiting{engine=\"0\",model_name=\"sim-7b\"} 1\n") !=
          std::string::npos);
    CHECK(page.find("vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"sim-7b\"} 0.4") != std::string::npos);
}

TEST_CASE("raw bodies: known bytes, one chunk an event") {
    TestEngine engine;
    const Reply plain = engine.ask(get("/raw/chunked?n=3"));
    CHECK(plain.chunks == std::vector<std::string>{"0000000000000000000\n", "0000000000000000001\n",
                                                   "0000000000000000002\n"});
    const Reply sse = engine.ask(get("/raw/chunked?n=2&type=sse&bytes=40&interval_ms=2"));
    REQUIRE(sse.chunks.size() == 2);
    CHECK(sse.chunks[1].size() == 40);
    CHECK(sse.chunks[1].ends_with("1\n\n"));
    CHECK(sse.field("content-type") == "text/event-stream");
    const Truth truth = engine.truth(2);
    CHECK(truth.events[1].at - truth.events[0].at >= 1ms);
    const Reply lines = engine.ask(get("/raw/chunked?n=1&type=ndjson"));
    CHECK(boost::json::parse(lines.body).at("k").as_string() == "00000000000");
    CHECK(lines.body.size() == 20);
}

TEST_CASE("the sink tells what arrived, beyond any bound on bodies that are read") {
    Options options = TestEngine::quick();
    options.max_body = 1000;
    TestEngine engine(options);
    const std::string upload(3'000'000, 'u');
    const auto told = boost::json::parse(engine.ask(post("/raw/sink", upload)).body);
    CHECK(told.at("bytes").as_int64() == 3'000'000);
    CHECK(std::stoull(std::string(told.at("fnv1a64").as_string()), nullptr, 16) == fnv1a(upload));
}
