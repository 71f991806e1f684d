#pragma once
// An engine for tests that look at what a client gets and at what the truth says.

#include <chrono>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include "tests/sim/engine.hpp"
#include "tests/sim/unit/client.hpp"

namespace sim::test {

/// An engine that is quick, and keeps its truths.
class TestEngine {
  public:
    explicit TestEngine(Options options = quick()) : engine_(prepared(std::move(options))) {
        engine_.start();
    }

    static Options quick() {
        Options options;
        options.lone = Pace{.ttft = std::chrono::milliseconds(1), .gap = Duration{0}};
        return options;
    }

    Engine* operator->() { return &engine_; }
    Reply ask(std::string_view request) const { return roundtrip(engine_.port(), request); }
    std::uint16_t port() const { return engine_.port(); }

    /// The truth of the request that ended as number `n` (from 1).
    Truth truth(std::uint64_t n = 1) {
        REQUIRE(engine_.wait_for_truths(n, std::chrono::seconds(5)));
        return engine_.truth().at(n - 1);
    }

  private:
    static Options prepared(Options options) {
        options.keep_truth = true;
        options.created = 1'767'225'600;  // bodies are compared byte by byte
        return options;
    }
    Engine engine_;
};

inline constexpr std::string_view k_chat = "/v1/chat/completions";
inline constexpr std::string_view k_body =
    R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":4})";
inline constexpr std::string_view k_plain = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4})";

inline std::string chat(std::string_view headers = "", std::string_view body = k_body) {
    return post(k_chat, body, headers);
}

}  // namespace sim::test
