// The engine over real sockets: what clients get, and that the truth says the same.

#include "tests/sim/engine.hpp"

#include <catch2/catch.hpp>

#include "tests/sim/dialects/dialect.hpp"
#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"
#include "tests/sim/unit/client.hpp"
#include "tests/sim/unit/test_engine.hpp"

using namespace sim;
using namespace sim::test;
using namespace std::chrono_literals;

TEST_CASE("what a client gets is what the truth says, for every API, streamed and plain") {
    struct Case {
        const char* path;
        const char* body;
        const char* type;
        bool streamed;
    };
    const Case cases[] = {
        {"/v1/chat/completions", R"({"messages":[],"stream":true,"max_tokens":5,"n":2})",
         "text/event-stream; charset=utf-8", true},
        {"/v1/chat/completions", R"({"messages":[],"max_tokens":5})", "application/json", false},
        {"/v1/completions", R"({"prompt":"x","stream":true,"max_tokens":5})",
         "text/event-stream; charset=utf-8", true},
        {"/v1/responses", R"({"input":"x","stream":true,"max_output_tokens":5})",
         "text/event-stream; charset=utf-8", true},
        {"/v1/responses", R"({"input":"x","max_output_tokens":5})", "application/json", false},
        {"/v1/messages", R"({"messages":[],"stream":true,"max_tokens":5})",
         "text/event-stream; charset=utf-8", true},
        {"/v1/messages", R"({"messages":[],"max_tokens":5})", "application/json", false},
        {"/generate", R"({"inputs":"x","parameters":{"max_new_tokens":5}})", "application/json", false},
        {"/generate_stream", R"({"inputs":"x","parameters":{"max_new_tokens":5}})",
         "text/event-stream; charset=utf-8", true},
        {"/", R"({"inputs":"x","stream":true,"parameters":{"max_new_tokens":5}})",
         "text/event-stream; charset=utf-8", true},
        {"/api/chat", R"({"messages":[],"options":{"num_predict":5}})", "application/x-ndjson", true},
        {"/api/generate", R"({"prompt":"x","options":{"num_predict":5},"stream":false})", "application/json",
         false},
        {"/completion", R"({"prompt":"x","stream":true,"n_predict":5})", "text/event-stream; charset=utf-8",
         true},
        {"/v2/models/m/generate", R"({"text_input":"x","max_tokens":5})", "application/json", false},
        {"/v2/models/m/generate_stream", R"({"text_input":"x","max_tokens":5})",
         "text/event-stream; charset=utf-8", true},
        {"/v1/embeddings", R"({"input":"x"})", "application/json", false},
        {"/v1/rerank", R"({"query":"q","documents":["x"]})", "application/json", false},
    };
    for (bool batching : {false, true}) {
        Options options = TestEngine::quick();
        if (batching) options.lone.reset();
        options.gpu.step_base = 1ms;
        TestEngine engine(options);
        std::uint64_t number = 0;
        for (const Case& c : cases) {
            INFO(c.path << " " << c.body << (batching ? ", batching" : ", lone"));
            const Reply reply = engine.ask(post(c.path, c.body, "x-request-id: me\r\n"));
            const Truth truth = engine.truth(++number);
            REQUIRE(reply.whole);
            CHECK(reply.status == 200);
            CHECK(reply.field("content-type") == c.type);
            CHECK(reply.field("x-request-id") == "me");
            CHECK(reply.body.size() == truth.answer_bytes);
            CHECK(fnv1a(reply.body) == truth.answer_fnv);
            CHECK(truth.id == "me");
            CHECK(truth.outcome == "complete");
            CHECK(truth.stream == c.streamed);
            CHECK(truth.request_bytes == std::string_view(c.body).size());
            CHECK(truth.request_fnv == fnv1a(c.body));
            CHECK_FALSE(truth.cancel_seen);
            const std::uint64_t tokens = !generates(route_of(c.path)->api)          ? 0
                                         : truth.api == "openai.chat" && c.streamed ? 10
                                                                                    : 5;
            CHECK(truth.output_tokens == tokens);
            if (!c.streamed) continue;
            CHECK(reply.chunks.size() == truth.events.size());  // each event is one chunk
            CHECK(truth.token_events == tokens);
        }
        CHECK(engine->counters().complete == number);
        CHECK(engine->counters().active == 0);
    }
}

TEST_CASE("times in the truth are in order") {
    Options options = TestEngine::quick();
    options.lone = Pace{.ttft = 5ms, .gap = 2ms};
    TestEngine engine(options);
    const TimePoint before = Clock::now();
    const Reply reply = engine.ask(chat());
    const TimePoint after = Clock::now();
    const Truth truth = engine.truth();
    REQUIRE(reply.whole);
    CHECK(before <= truth.arrival);
    CHECK(truth.arrival <= *truth.body_read);
    CHECK(*truth.body_read <= *truth.head_sent);
    TimePoint last = *truth.head_sent;
    std::vector<TimePoint> tokens;
    for (const Truth::Sent& sent : truth.events) {
        CHECK(last <= sent.at);
        last = sent.at;
        if (sent.tokens > 0) tokens.push_back(sent.at);
    }
    CHECK(last <= after);
    REQUIRE(tokens.size() == 4);
    CHECK(tokens[0] - *truth.body_read >= 5ms);
    CHECK(tokens[3] - *truth.body_read >= 11ms);
}

TEST_CASE("headers shape a single stream") {
    TestEngine engine;
    const Reply reply = engine.ask(
        chat("x-request-id: me\r\nx-sim-tokens: 7\r\nx-sim-tokens-per-event: 3\r\nx-sim-bytes: 50\r\n"
             "x-sim-usage: on\r\nx-sim-prompt-tokens: 99\r\n"));
    const Truth truth = engine.truth();
    CHECK(truth.token_events == 3);
    CHECK(truth.output_tokens == 7);
    CHECK(truth.prompt_tokens == 99);
    CHECK(truth.usage->completion_tokens == 7);
    CHECK(reply.body.find(slice_text(stream_key("me"), 0, 3, 3, 50)) != std::string::npos);
    CHECK(reply.body.find(R"("prompt_tokens":99)") != std::string::npos);
}

TEST_CASE("a chunk may come in pieces, an answer without framing") {
    TestEngine engine;
    const Reply whole = engine.ask(chat("x-request-id: me\r\n"));
    const Reply pieces = engine.ask(chat("x-request-id: me\r\nx-sim-chunk-split: 7:50\r\n"));
    CHECK(pieces.chunks == whole.chunks);
    const Reply bare = engine.ask(chat("x-request-id: me\r\nx-sim-close: 1\r\n"));
    CHECK(bare.whole);
    CHECK(bare.close == Close::fin);
    CHECK(bare.field("transfer-encoding").empty());
    CHECK(bare.body == whole.body);
}

TEST_CASE("who asks for it is told the hash of the body: ahead of a length, behind chunks") {
    TestEngine engine;
    const std::string ask = "x-request-id: me\r\nx-sim-digest: on\r\n";
    constexpr std::string_view k_name = "x-sim-body-fnv1a64";
    const Reply streamed = engine.ask(chat(ask));
    CHECK(streamed.field("trailer") == k_name);
    CHECK(streamed.trailers == concat(k_name, ": ", hex(fnv1a(streamed.body)), "\r\n"));
    const Reply plain = engine.ask(chat(ask, k_plain));
    CHECK(plain.field(k_name) == hex(fnv1a(plain.body)));
    const Reply refused = engine.ask(chat(ask, "{"));
    CHECK(refused.status == 400);
    CHECK(refused.field(k_name) == hex(fnv1a(refused.body)));
    const Reply bare = engine.ask(chat(ask + "x-sim-close: 1\r\n"));
    CHECK(bare.head.find(k_name) == std::string::npos);
    CHECK(bare.body == streamed.body);
    const Reply unasked = engine.ask(chat("x-request-id: me\r\n"));
    CHECK(unasked.trailers.empty());
    CHECK(unasked.field("trailer").empty());
    CHECK(unasked.body == streamed.body);
}

TEST_CASE("an HTTP/1.0 client gets a body that ends with the connection") {
    TestEngine engine;
    const Reply reply = engine.ask(
        concat("POST ", k_chat, " HTTP/1.0\r\ncontent-length: ", k_body.size(), "\r\n\r\n", k_body));
    CHECK(reply.whole);
    CHECK(reply.close == Close::fin);
    CHECK(reply.field("transfer-encoding").empty());
    CHECK(reply.body.ends_with("data: [DONE]\n\n"));
}

TEST_CASE("a connection carries many requests, also when the next comes early") {
    TestEngine engine;
    Client client(engine.port());
    client.send(chat() + chat("", k_plain) + get("/health"));
    CHECK(client.read_reply().chunks.size() > 4);
    CHECK(client.read_reply().field("content-type") == "application/json");
    CHECK(client.read_reply().status == 200);
    client.send(chat());
    CHECK(client.read_reply().whole);
    CHECK(engine->counters().accepted == 1);
}

TEST_CASE("an idle connection is closed after its time") {
    Options options = TestEngine::quick();
    options.keep_alive = 30ms;
    TestEngine engine(options);
    Client client(engine.port());
    client.send(chat());
    CHECK(client.read_reply().whole);
    CHECK(client.read_reply().close == Close::fin);
}

TEST_CASE("request bodies: chunked, announced with Expect, too large, cut") {
    Options options = TestEngine::quick();
    options.max_body = 1000;
    TestEngine engine(options);

    const std::string head = concat("POST ", k_chat, " HTTP/1.1\r\nhost: sim\r\n");
    const std::string chunks = concat("a\r\n", k_body.substr(0, 10), "\r\n1\r\n", k_body.substr(10, 1),
                                      "\r\n", "00f;x=y\r\n", k_body.substr(11, 15), "\r\n");
    std::string rest(k_body.substr(26));
    rest.resize(0x40, ' ');
    const Reply chunked = engine.ask(
        concat(head, "transfer-encoding: chunked\r\n\r\n", chunks, "40\r\n", rest, "\r\n0\r\n\r\n"));
    CHECK(chunked.status == 200);
    CHECK(engine.truth(1).request_fnv == fnv1a(concat(k_body.substr(0, 26), rest)));

    Client patient(engine.port());
    patient.send(concat(head, "expect: 100-continue\r\ncontent-length: ", k_body.size(), "\r\n\r\n"));
    REQUIRE(patient.read_until("HTTP/1.1 100 Continue\r\n\r\n"));
    patient.send(k_body);
    CHECK(patient.read_reply().whole);

    Client large(engine.port());
    large.send(concat(head, "expect: 100-continue\r\ncontent-length: 1001\r\n\r\n"));
    const Reply refused = large.read_reply();
    CHECK(refused.status == 413);
    CHECK(refused.head.find("100 Continue") == std::string::npos);
    CHECK(refused.field("connection") == "close");

    const std::string big(2000, 'x');
    CHECK(
        engine.ask(concat(head, "transfer-encoding: chunked\r\n\r\n7d0\r\n", big, "\r\n0\r\n\r\n")).status ==
        413);
    CHECK(engine.ask(concat(head, "transfer-encoding: chunked\r\n\r\nzz\r\n")).status == 400);
}

TEST_CASE("what is asked wrongly is answered in the words of the API") {
    Options options;
    options.gpu.kv_tokens = 100;
    TestEngine engine(options);
    CHECK(engine.ask(get("/nowhere")).status == 404);
    const Reply method = engine.ask(get(k_chat));
    CHECK(method.status == 405);
    CHECK(method.field("allow") == "POST");
    CHECK(engine.ask("NONSENSE\r\n\r\n").status == 400);
    CHECK(
        engine.ask(concat("GET / HTTP/1.1\r\nhost: x\r\nx: ", std::string(70'000, 'a'), "\r\n\r\n")).status ==
        431);

    const Reply bad = engine.ask(post("/v1/messages", "{"));
    CHECK(bad.status == 400);
    CHECK(bad.body.starts_with(R"({"type":"error","error":)"));
    const Reply header = engine.ask(chat("x-sim-tokens: many\r\n"));
    CHECK(header.status == 400);
    CHECK(header.body.find("x-sim-tokens") != std::string::npos);
    const Reply huge = engine.ask(chat("x-sim-tokens: 100\r\n"));
    CHECK(huge.status == 400);
    CHECK(huge.body.find("maximum context length is 100 tokens") != std::string::npos);
    CHECK(engine.truth(3).outcome == "refused");
    CHECK(engine->counters().refused == 3);
}
