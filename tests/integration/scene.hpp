#pragma once
// What many of these tests have in common: an engine that takes its time, a request, and what must be left of
// it when all is over.

#include <chrono>
#include <cstdint>
#include <string>

#include <catch2/catch.hpp>

#include "tests/sim/engine.hpp"
#include "tests/sim/options.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/noren_under_test.hpp"

namespace test {

/// Silent for a minute, unless the request says otherwise; then a token every 20 ms.
inline sim::Options slow_engine() {
    sim::Options options;
    options.lone = sim::Pace{std::chrono::seconds(60), std::chrono::milliseconds(20), false};
    options.keep_truth = true;
    return options;
}

/// 5 ms to the first token, then one each millisecond.
inline sim::Options quick_engine() {
    sim::Options options;
    options.lone = sim::Pace{std::chrono::milliseconds(5), std::chrono::milliseconds(1), false};
    options.keep_truth = true;
    return options;
}

/// For so many tokens, where no x-sim-tokens among the fields says otherwise.
inline std::string chat(int tokens, const std::string& extra_fields = "", bool stream = true) {
    const std::string body = std::string("{\"model\":\"m\",\"stream\":") + (stream ? "true" : "false") +
                             ",\"max_tokens\":" + std::to_string(tokens) +
                             ",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
    return post_request("/v1/chat/completions", body, extra_fields);
}

inline std::string long_chat(const std::string& extra_fields = "", bool stream = true) {
    return chat(1000, extra_fields, stream);
}

/// A streamed answer in chunks, from its head to its end.
inline bool is_whole_stream(const std::string& answer) {
    return answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n");
}

/// Behind the head; empty if that is not whole.
inline std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : answer.substr(end + 4);
}

/// So many requests have come to the engine: noren counts them as admitted a little earlier.
inline bool arrived(const sim::Engine& engine, std::uint64_t requests) {
    return eventually([&] { return engine.counters().requests >= requests; }) &&
           engine.counters().requests == requests;
}

/// No request, no permit, no place in the queue, no connection to the engine in use.
inline void expect_nothing_held(const NorenUnderTest& noren) {
    CHECK(noren.reaches("noren_inflight_requests", 0));
    CHECK(noren.metric("noren_running_requests") == 0);
    CHECK(noren.metric("noren_queued_requests") == 0);
    CHECK(noren.metric("noren_awaiting_first_token_requests") == 0);
    CHECK(noren.metric("noren_upstream_connections{state=\"active\"}") == 0);
}

}  // namespace test
