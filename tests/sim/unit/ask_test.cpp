// Requests of every API, brought to one form.

#include "tests/sim/ask.hpp"

#include <map>

#include <catch2/catch.hpp>

using namespace sim;

namespace {

Result<Ask> read(std::string_view path, std::string_view body, const Overrides& overrides = {}) {
    return read_ask(*route_of(path), body, overrides, AskLimits{});
}

Result<Overrides> headers(std::map<std::string_view, std::string_view> fields) {
    return read_overrides([&](std::string_view name) {
        const auto it = fields.find(name);
        return it == fields.end() ? std::string_view() : it->second;
    });
}

}  // namespace

TEST_CASE("paths lead to their APIs") {
    CHECK(route_of("/v1/chat/completions")->api == Api::chat);
    CHECK(route_of("/completions")->api == Api::llamacpp);
    CHECK(route_of("/v1/completions")->api == Api::completions);
    CHECK(route_of("/")->api == Api::tgi_root);
    const auto triton = route_of("/v2/models/big/versions/3/generate_stream");
    CHECK(triton->api == Api::triton_stream);
    CHECK(triton->model == "big");
    CHECK(route_of("/v2/models/big/generate")->api == Api::triton);
    for (const char* path : {"", "/v1", "/v1/chat", "/v1/chat/completions/", "/v2/models/", "/v2/models/x",
                             "/v2/models//generate", "/v2/models/x/infer"}) {
        INFO(path);
        CHECK_FALSE((route_of(path) && !route_of(path)->model.empty()));
    }
}

TEST_CASE("every API's own words for stream, tokens and usage") {
    struct Case {
        const char* path;
        const char* body;
        bool stream;
        std::uint32_t tokens;
        bool usage;
    };
    const Case cases[] = {
        {"/v1/chat/completions", R"({"messages":[],"max_tokens":7})", false, 7, true},
        {"/v1/chat/completions", R"({"messages":[],"max_tokens":7,"max_completion_tokens":9,"stream":true})",
         true, 9, false},
        {"/v1/chat/completions", R"({"messages":[],"stream":true,"stream_options":{"include_usage":true}})",
         true, 128, true},
        {"/v1/completions", R"({"prompt":"x","max_tokens":null,"stream":true})", true, 128, false},
        {"/v1/responses", R"({"input":"x","max_output_tokens":3,"stream":true})", true, 3, true},
        {"/v1/messages", R"({"messages":[],"max_tokens":5})", false, 5, true},
        {"/generate", R"({"inputs":"x","parameters":{"max_new_tokens":4,"details":true}})", false, 4, true},
        {"/generate_stream", R"({"inputs":"x","parameters":{"max_new_tokens":4}})", true, 4, false},
        {"/", R"({"inputs":"x","stream":true})", true, 128, false},
        {"/api/chat", R"({"messages":[]})", true, 128, true},
        {"/api/generate", R"({"prompt":"x","stream":false,"options":{"num_predict":6}})", false, 6, true},
        {"/completion", R"({"prompt":"x","n_predict":-1,"stream":true})", true, 128, true},
        {"/v2/models/m/generate_stream", R"({"text_input":"x","parameters":{"max_tokens":8}})", true, 8,
         true},
        {"/v1/embeddings", R"({"input":["a","b"],"stream":true})", false, 1, true},
        {"/v1/rerank", R"({"query":"q","documents":["a","b","c"]})", false, 1, true},
    };
    for (const Case& c : cases) {
        INFO(c.path << " " << c.body);
        const auto ask = read(c.path, c.body);
        REQUIRE(ask.has_value());
        CHECK(ask->stream == c.stream);
        CHECK(ask->output_tokens == c.tokens);
        CHECK(ask->report_usage == c.usage);
    }
}

TEST_CASE("prompt tokens are a quarter of the text, wherever it stands") {
    const auto body = R"({"messages":[{"role":"user","content":[{"type":"text","text":"0123456789"}]}]})";
    CHECK(read("/v1/chat/completions", body)->prompt_tokens == (10 + 4 + 4 + 3) / 4);
    CHECK(read("/v1/completions", R"({"prompt":""})")->prompt_tokens == 1);
    CHECK(read("/v1/completions", R"({"prompt":[1,2,3]})")->prompt_tokens == 3);
    CHECK(read("/v1/embeddings", R"({"input":["aaaa","bbbb"]})")->items == 2);
}

TEST_CASE("the number of tokens is bounded, and a bound of ours is told apart from one of theirs") {
    CHECK(read("/v1/completions", R"({"prompt":"x","max_tokens":99999})")->output_tokens == 4096);
    CHECK(read("/v1/completions", R"({"prompt":"x","max_tokens":5})")->hit_limit);
    CHECK_FALSE(read("/v1/completions", R"({"prompt":"x"})")->hit_limit);
    Overrides overrides;
    overrides.tokens = 50'000;
    CHECK(read("/v1/completions", R"({"prompt":"x","max_tokens":5})", overrides)->output_tokens == 50'000);
}

TEST_CASE("bad bodies are refused in words") {
    const std::pair<const char*, const char*> cases[] = {
        {"{", "Invalid JSON"},
        {"[]", "object"},
        {"{}", "messages: Field required"},
        {R"({"messages":[],"max_tokens":0})", "max_tokens must be at least 1, got 0."},
        {R"({"messages":[],"max_tokens":"5"})", "max_tokens must be an integer"},
        {R"({"messages":[],"n":0})", "n must be"},
        {R"({"messages":[],"n":1000})", "n must be"},
    };
    for (const auto& [body, words] : cases) {
        INFO(body);
        const auto ask = read("/v1/chat/completions", body);
        REQUIRE_FALSE(ask.has_value());
        CHECK(ask.error().status == 400);
        CHECK(ask.error().message.find(words) != std::string::npos);
    }
    CHECK_FALSE(read("/v1/messages", R"({"messages":[]})").has_value());
}

TEST_CASE("x-sim headers override") {
    const auto o = headers({{"x-sim-ttft-ms", "20"},
                            {"x-sim-interval-us", "0"},
                            {"x-sim-gap", "exp"},
                            {"x-sim-tokens", "3"},
                            {"x-sim-prompt-tokens", "77"},
                            {"x-sim-bytes", "200"},
                            {"x-sim-tokens-per-event", "2"},
                            {"x-sim-usage", "off"},
                            {"x-sim-fault", "cut@9"},
                            {"x-sim-chunk-split", "5:100"},
                            {"x-sim-close", "1"}});
    REQUIRE(o.has_value());
    CHECK(o->ttft->count() == 20);
    CHECK(o->interval->count() == 0);
    CHECK(o->exponential == true);
    CHECK(o->usage == false);
    CHECK(o->fault->is(Fault::Kind::cut));
    CHECK(o->split_bytes == 5);
    CHECK(o->split_pause.count() == 100);
    CHECK(o->close);
    const auto ask = read("/v1/chat/completions", R"({"messages":[]})", *o);
    CHECK(ask->output_tokens == 3);
    CHECK(ask->prompt_tokens == 77);
    CHECK(ask->event_bytes == 200);
    CHECK(ask->tokens_per_event == 2);
    CHECK_FALSE(ask->report_usage);
}

TEST_CASE("x-sim headers that make no sense are refused by name") {
    const std::pair<const char*, const char*> cases[] = {
        {"x-sim-ttft-ms", "fast"},  {"x-sim-interval-us", "-1"},    {"x-sim-gap", "normal"},
        {"x-sim-tokens", "0"},      {"x-sim-bytes", "1e3"},         {"x-sim-usage", "maybe"},
        {"x-sim-fault", "explode"}, {"x-sim-chunk-split", "0"},     {"x-sim-chunk-split", "5:x"},
        {"x-sim-close", "yes"},     {"x-sim-tokens", "9999999999"},
    };
    for (const auto& [name, value] : cases) {
        INFO(name << ": " << value);
        const auto overrides = headers({{name, value}});
        REQUIRE_FALSE(overrides.has_value());
        CHECK(overrides.error().message.find(name) != std::string::npos);
        CHECK(overrides.error().message.find(value) != std::string::npos);
    }
}
