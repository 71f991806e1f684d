// Faults strike as told.

#include <system_error>

#include <catch2/catch.hpp>

#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"
#include "tests/sim/unit/test_engine.hpp"
#include "tests/support/eventually.hpp"

using namespace sim;
using namespace sim::test;
using ::test::eventually;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view k_six_tokens =
    R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":6})";

/// A quick lone stream with a fault.
std::string faulty(std::string_view fault, std::string_view path = k_chat,
                   std::string_view body = k_six_tokens) {
    return post(path, body,
                concat("x-sim-ttft-ms: 0\r\nx-sim-interval-us: 0\r\nx-sim-fault: ", fault, "\r\n"));
}

/// An engine that keeps to its usual times.
class Faults : public TestEngine {
  public:
    Faults() : TestEngine(Options{}) {}

    /// The truth of the next request that ended.
    Truth truth() { return TestEngine::truth(++ended_); }

  private:
    std::uint64_t ended_ = 0;
};

bool connects(std::uint16_t port) {
    try {
        const Client client(port);
        return true;
    } catch (const std::system_error&) {
        return false;
    }
}

}  // namespace

TEST_CASE("reset and cut strike after exactly that many body bytes") {
    Faults faults;
    const Reply whole =
        faults.ask(chat("x-request-id: me\r\nx-sim-ttft-ms: 0\r\nx-sim-interval-us: 0\r\n", k_six_tokens));
    faults.truth();
    for (std::uint64_t at :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{300}, whole.body.size() - 1, whole.body.size()}) {
        INFO(at);
        const Reply cut = faults.ask(faulty(concat("cut@", at, "\r\nx-request-id: me")));
        CHECK_FALSE(cut.whole);
        CHECK(cut.close == Close::fin);
        CHECK(cut.body.size() == at);
        CHECK(whole.body.starts_with(cut.body));
        const Truth truth = faults.truth();
        CHECK(truth.outcome == "faulted");
        CHECK(truth.fault == concat("cut@", at));
        CHECK(truth.answer_bytes == at);
        CHECK_FALSE(truth.cancel_seen);
        CHECK_FALSE(truth.usage);

        const Reply reset = faults.ask(faulty(concat("reset@", at, "\r\nx-request-id: me")));
        CHECK_FALSE(reset.whole);
        CHECK(reset.close == Close::reset);
        CHECK(faults.truth().answer_bytes == at);
    }
}

TEST_CASE("a plain answer can be cut as well") {
    Faults faults;
    const Reply cut = faults.ask(faulty("cut@20", k_chat, R"({"messages":[],"max_tokens":3})"));
    CHECK(cut.status == 200);
    CHECK_FALSE(cut.whole);
    CHECK(cut.body.size() == 20);
    CHECK(faults.truth().outcome == "faulted");
}

TEST_CASE("stall is silence until the client leaves") {
    Faults faults;
    Client client(faults.port());
    client.send("GET /raw/chunked?n=5 HTTP/1.1\r\nhost: x\r\nx-sim-fault: stall@30\r\n\r\n");
    REQUIRE(client.read_until("0000000000000000000\n\r\n15\r\n0000000000"));
    CHECK(faults->counters().active == 1);
    client.close();
    const Truth truth = faults.truth();
    CHECK(truth.outcome == "faulted");
    CHECK(truth.cancel_seen);
    CHECK(truth.answer_bytes == 30);
}

TEST_CASE("before the head: garbage, close, reset") {
    Faults faults;
    Client garbage(faults.port());
    garbage.send(faulty("garbage"));
    CHECK(garbage.read_reply().status == 0);
    CHECK(garbage.received().find("this is not HTTP") != std::string::npos);
    CHECK(faults.truth().status == 0);

    const Reply closed = faults.ask(faulty("close-before-head"));
    CHECK(closed.head.empty());
    CHECK(closed.close == Close::fin);
    CHECK(faults.truth().outcome == "faulted");
    const Reply reset = faults.ask(faulty("reset-before-head"));
    CHECK(reset.head.empty());
    CHECK(reset.close == Close::reset);
    CHECK_FALSE(faults.truth().head_sent);
}

TEST_CASE("an early answer does not wait for the body") {
    Faults faults;
    Client client(faults.port());
    client.send(
        concat("POST ", k_chat,
               " HTTP/1.1\r\nhost: x\r\nx-sim-fault: early:413\r\ncontent-length: 100000000\r\n\r\n{"));
    const Reply reply = client.read_reply();
    CHECK(reply.status == 413);
    CHECK(reply.whole);
    CHECK(reply.field("connection") == "close");
    client.close();
    const Truth truth = faults.truth();
    CHECK(truth.outcome == "faulted");
    CHECK_FALSE(truth.body_read);
}

TEST_CASE("heads: slow, huge") {
    Faults faults;
    CHECK(faults.ask(faulty("slow-head:30")).whole);
    const Truth slow = faults.truth();
    CHECK(*slow.head_sent - *slow.body_read >= 30ms);
    const Reply huge = faults.ask(faulty("huge-head:100000"));
    CHECK(huge.field("x-sim-padding").size() == 100'000);
    CHECK(huge.whole);
}

TEST_CASE("chunk framing: broken, unfinished") {
    Faults faults;
    Client client(faults.port());
    client.send(faulty("bad-chunk"));
    const Reply bad = client.read_reply();
    CHECK_FALSE(bad.whole);
    CHECK(bad.chunks.size() == 2);  // role and the first token
    CHECK(client.received().ends_with("zz\r\nthis is no chunk\r\n"));
    CHECK(faults.truth().outcome == "faulted");

    const Reply unfinished = faults.ask(faulty("no-final-chunk"));
    CHECK_FALSE(unfinished.whole);
    CHECK(unfinished.close == Close::fin);
    CHECK(unfinished.body.ends_with("data: [DONE]\n\n"));
    CHECK(faults.truth().outcome == "faulted");
}

TEST_CASE("an error event comes after that many token events") {
    Faults faults;
    const Reply reply = faults.ask(faulty("error@2"));
    CHECK(reply.whole);
    CHECK(reply.body.find(R"({"error": {"message")") != std::string::npos);
    const Truth truth = faults.truth();
    CHECK(truth.token_events == 2);
    CHECK(truth.outcome == "faulted");
    CHECK_FALSE(truth.usage);

    CHECK(faults.ask(faulty("error@6")).body.find("error") != std::string::npos);
    CHECK(faults.truth().outcome == "faulted");
    CHECK(faults.ask(faulty("error@7")).body.find("\"error\": {") == std::string::npos);  // never reached
    CHECK(faults.truth().outcome == "complete");

    const Reply plain = faults.ask(faulty("error@0", k_chat, R"({"messages":[]})"));
    CHECK(plain.status == 500);
    CHECK(faults.truth().outcome == "faulted");
}

TEST_CASE("close-after looks like keep-alive and is not") {
    Faults faults;
    Client client(faults.port());
    client.send(faulty("close-after"));
    const Reply reply = client.read_reply();
    CHECK(reply.whole);
    CHECK(reply.field("connection").empty());
    CHECK(client.read_reply().close == Close::fin);
    CHECK(faults.truth().outcome == "complete");
}

TEST_CASE("a script gives each request its fault, in order") {
    Faults faults;
    faults->set_script({*parse_fault("close-before-head"), Fault{}});
    const std::string request = chat("x-sim-ttft-ms: 0\r\nx-sim-interval-us: 0\r\n", k_six_tokens);
    CHECK(faults.ask(request).head.empty());
    CHECK(faults.ask(request).whole);
    CHECK(faults.ask(request).whole);

    CHECK(faults.ask(post("/sim/control", R"({"faults":["", "cut@5"]})")).status == 200);
    CHECK(faults.ask(request).whole);
    CHECK(faults.ask(request).body.size() == 5);
    CHECK(faults.ask(request).whole);
    const Reply nonsense = faults.ask(post("/sim/control", R"({"faults":["boom"]})"));
    CHECK(nonsense.status == 400);
    CHECK(nonsense.body.find("boom") != std::string::npos);
}

TEST_CASE("the listener can be away for a while") {
    Faults faults;
    Client before(faults.port());
    before.send(get("/health"));
    CHECK(before.read_reply().status == 200);
    faults->refuse_for(100ms);
    CHECK_FALSE(connects(faults.port()));
    before.send(get("/health"));
    CHECK(before.read_reply().status == 200);  // open connections stay
    CHECK(eventually([&] { return connects(faults.port()); }));

    Client streaming(faults.port());
    streaming.send(chat("x-sim-ttft-ms: 60000\r\n"));
    REQUIRE(streaming.read_until("\r\n\r\n"));
    faults->refuse_for(100ms, true);
    CHECK(streaming.read_reply().close == Close::reset);
    CHECK(faults.truth().outcome == "aborted");
    CHECK(eventually([&] { return connects(faults.port()); }));
}

TEST_CASE("an engine that stops ends everything at once and says so") {
    Faults engine;
    Client silent(engine.port());
    silent.send(chat("x-sim-ttft-ms: 60000\r\n"));
    REQUIRE(silent.read_until("\r\n\r\n"));
    Client batched(engine.port());
    batched.send(chat("x-sim-tokens: 20000\r\n"));
    REQUIRE(batched.read_until("data: "));
    Client idle(engine.port());
    Client uploading(engine.port());
    uploading.send(concat("POST ", k_chat, " HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{"));
    REQUIRE(eventually([&] { return engine->counters().active == 3; }));

    engine->stop();
    CHECK(engine->counters().active == 0);
    CHECK(engine->counters().connections == 0);
    REQUIRE(engine->truth().size() == 3);
    for (const Truth& truth : engine->truth())
        CHECK(truth.outcome == "aborted");
    CHECK_FALSE(batched.read_reply().whole);
    CHECK_FALSE(connects(engine.port()));
}

TEST_CASE("an address that cannot be had is an error with its name in it") {
    const Faults first;
    Options taken;
    taken.port = first.port();
    Engine second(taken);
    const std::string words =
        concat("cannot listen on 127.0.0.1 port ", first.port(), ": Address already in use");
    CHECK_THROWS_WITH(second.start(), words);
    Options nonsense;
    nonsense.address = "localhost:";
    Engine third(nonsense);
    CHECK_THROWS_AS(third.start(), std::system_error);
}
