// The line of the access log that each exchange leaves.

#include <string>
#include <string_view>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

/// Without its time, which is the wall clock's.
std::string line_of(const Rig& rig) {
    REQUIRE(rig.log.size() == 1);
    const std::string& line = rig.log[0];
    REQUIRE(line.rfind(R"({"time":")", 0) == 0);
    return line.substr(line.find(',') + 1);
}

TEST_CASE("the line of a stream says where its time went") {
    Stream d(40);
    d.read(100, tokens(1));
    d.meter.stalled(at(110));
    d.meter.resumed(at(115));
    d.read(140, tokens(1) + finish_event("stop") + usage_event(12, 5, 8, 1) + std::string(k_done));
    d.meter.upstream_done(at(140));
    d.meter.finish({Outcome::ok, 200, {}}, {101, 2000, 2001, 102}, at(141.5));
    CHECK(line_of(d) ==
          R"("level":"info","msg":"exchange","request_id":"id-1","method":"POST",)"
          R"("path":"/v1/chat/completions","endpoint":"chat_completions","model":"m","stream":true,)"
          R"("status":200,"outcome":"ok","duration_ms":141.500,"upload_ms":11.000,"queue_ms":20.000,)"
          R"("connect_ms":5.000,"prefill_ms":64.000,"decode_ms":36.500,"stall_ms":5.000,"ttft_ms":100.000,)"
          R"("tpot_ms":10.000,"tps":100.000,"input_tokens":12,"cached_tokens":8,"output_tokens":5,)"
          R"("output_tokens_source":"usage","reasoning_tokens":1,"token_events":2,"complete":true,)"
          R"("finish_reason":"stop","bytes_from_client":101,"bytes_to_upstream":102,)"
          R"("bytes_from_upstream":2001,"bytes_to_client":2000,"upstream_reused":false})");
}

TEST_CASE("the line of a refused request says why") {
    Rig rig;
    Driven d(rig);
    d.meter.asked("m", 1, true);
    d.meter.queued(at(2), true);
    d.end(7, Outcome::rejected, 429, "queue_timeout");
    CHECK(line_of(rig) ==
          R"("level":"warning","msg":"exchange","request_id":"id-1","method":"POST",)"
          R"("path":"/v1/chat/completions","endpoint":"chat_completions","model":"m","stream":true,)"
          R"("status":429,"outcome":"rejected","reason":"queue_timeout","duration_ms":7.000,)"
          R"("upload_ms":2.000,"queue_ms":5.000,"connect_ms":0.000,"prefill_ms":0.000,"decode_ms":0.000,)"
          R"("stall_ms":0.000,"bytes_from_client":0,"bytes_to_upstream":0,"bytes_from_upstream":0,)"
          R"("bytes_to_client":0})");
}

TEST_CASE("the level follows the cause") {
    struct Case {
        Outcome outcome;
        const char *reason, *level;
    };
    const auto c =
        GENERATE(Case{Outcome::ok, "", "info"}, Case{Outcome::client_closed, "client_closed", "info"},
                 Case{Outcome::rejected, "queue_full", "warning"},
                 Case{Outcome::bad_request, "bad_request", "warning"},
                 Case{Outcome::timeout, "stall_timeout", "warning"},
                 Case{Outcome::timeout, "upstream_timeout", "error"},
                 Case{Outcome::upstream_error, "upstream_reset", "error"},
                 Case{Outcome::internal_error, "internal_error", "error"});
    Rig rig;
    Driven d(rig);
    d.end(7, c.outcome, 200, c.reason);
    INFO(c.reason);
    CHECK(line_of(rig).rfind("\"level\":\"" + std::string(c.level) + "\"", 0) == 0);
}

TEST_CASE("a client that left: where; an engine that failed inside a 200: that it did") {
    Rig left;
    Driven d(left);
    d.until_sent();
    d.end(70, Outcome::client_closed, 0, "client_closed");
    CHECK(line_of(left).find(R"("outcome":"client_closed","reason":"client_closed","phase":"prefill",)") !=
          std::string::npos);

    Rig failed;
    Driven e(failed);
    e.until_sent();
    e.stream_head(40);
    e.read(50, "data: {\"error\":{\"message\":\"boom\"}}\n\n");
    e.whole(60);
    CHECK(line_of(failed).find(R"("outcome":"upstream_error","engine_error":true,)") != std::string::npos);
}

TEST_CASE("no speed in the line where there is none to tell") {
    Rig rig;
    Driven d(rig);
    d.until_sent("m", 2);
    d.stream_head(40);
    d.read(50, tokens(1));
    d.read(60, tokens(1));
    d.whole(60);
    CHECK(line_of(rig).find("ttft_ms") != std::string::npos);
    CHECK(line_of(rig).find("tpot_ms") == std::string::npos);
}

TEST_CASE("whatever a client sends as path and model, the line is one line") {
    Rig rig;
    {
        ExchangeMeter meter(rig.telemetry, ApiEndpoint::passthrough, false, "\xff\"", "GET", "/a\"b\n\\",
                            at(0));
        meter.asked(std::string(300, '\n'), 1, false);
        meter.finish({Outcome::ok, 200, {}}, {}, at(1));
    }
    REQUIRE(rig.log.size() == 1);
    CHECK(rig.log[0].find('\n') == std::string::npos);
    CHECK(rig.log[0].find(R"("request_id":"\ufffd\"")") != std::string::npos);
    CHECK(rig.log[0].find(R"("path":"/a\"b\u000a\\")") != std::string::npos);
}

}  // namespace
}  // namespace noren::metrics
