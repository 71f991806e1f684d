#include "metrics/json_line.hpp"

#include <limits>
#include <random>
#include <regex>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics {
namespace {

using namespace test;

std::string as_json(std::string_view value) {
    JsonLine line;
    line.add("s", value);
    return std::move(line).finish();
}

TEST_CASE("members of every kind") {
    JsonLine line;
    line.add("a", std::string_view("x")).add("b", std::int64_t{-7}).add("c", true).add("d", 1.5);
    line.add("e", std::optional<std::int64_t>()).add("f", std::optional<std::int64_t>(0));
    CHECK(std::move(line).finish() == R"({"a":"x","b":-7,"c":true,"d":1.500,"f":0})");
    CHECK(JsonLine().finish() == "{}");
}

TEST_CASE("numbers that JSON cannot say are null") {
    const auto number = [](double value) {
        JsonLine line;
        line.add("n", value);
        return std::move(line).finish();
    };
    CHECK(number(std::numeric_limits<double>::infinity()) == R"({"n":null})");
    CHECK(number(std::numeric_limits<double>::quiet_NaN()) == R"({"n":null})");
    CHECK(number(1e300) == R"({"n":null})");
    CHECK(number(0.0004) == R"({"n":0.000})");
    CHECK(number(123456789.0125) == R"({"n":123456789.013})");
}

TEST_CASE("strings are escaped as RFC 8259 wants it") {
    CHECK(as_json("a\"b\\c/d") == R"({"s":"a\"b\\c/d"})");
    CHECK(as_json(std::string_view("\0\x01\n\x1f\x7f", 5)) == "{\"s\":\"\\u0000\\u0001\\u000a\\u001f\x7f\"}");
    CHECK(as_json("ラーメン \xf0\x9f\x8d\x9c") == "{\"s\":\"ラーメン \xf0\x9f\x8d\x9c\"}");
}

/// One for each maximal part of a sequence (Unicode 16, 3.9, table 3-8).
TEST_CASE("what is no UTF-8 becomes the replacement character") {
    struct Case {
        std::string_view bytes;
        const char* text;
    };
    const auto c =
        GENERATE(Case{"a\xff"
                      "b",
                      R"(a\ufffdb)"},
                 Case{"\x80", R"(\ufffd)"}, Case{"\xc0\xaf", R"(\ufffd\ufffd)"}, Case{"\xc3", R"(\ufffd)"},
                 Case{"\xe0\x80\x80", R"(\ufffd\ufffd\ufffd)"}, Case{"\xed\xa0\x80", R"(\ufffd\ufffd\ufffd)"},
                 Case{"\xf4\x90\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"}, Case{"\xf0\x9f\x8d", R"(\ufffd)"},
                 Case{"\xe3\x83"
                      "a",
                      R"(\ufffda)"},
                 Case{"\xf5\x80\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"});
    CHECK(as_json(c.bytes) == "{\"s\":\"" + std::string(c.text) + "\"}");
}

/// RFC 3629, written from its grammar (UTF8-octets), apart from the code under test.
bool is_utf8(const std::string& text) {
    static const std::regex grammar(
        "(?:[\\x00-\\x7f]|[\\xc2-\\xdf][\\x80-\\xbf]|\\xe0[\\xa0-\\xbf][\\x80-\\xbf]|"
        "[\\xe1-\\xec\\xee\\xef][\\x80-\\xbf]{2}|\\xed[\\x80-\\x9f][\\x80-\\xbf]|"
        "\\xf0[\\x90-\\xbf][\\x80-\\xbf]{2}|[\\xf1-\\xf3][\\x80-\\xbf]{3}|\\xf4[\\x80-\\x8f][\\x80-\\xbf]{2})"
        "*");
    return std::regex_match(text, grammar);
}

TEST_CASE("random bytes come out as one JSON string of valid UTF-8") {
    REQUIRE(is_utf8("ラーメン \xf0\x9f\x8d\x9c"));
    REQUIRE_FALSE(is_utf8("\xff"));
    REQUIRE_FALSE(is_utf8("\xe0\x80\x80"));
    std::mt19937 random(11);
    for (int round = 0; round < 3000; ++round) {
        std::string bytes(random() % 60, '\0');
        for (char& c : bytes)
            c = static_cast<char>(random() % 3 == 0 ? random() % 128 : 128 + random() % 128);
        const std::string json = as_json(bytes);
        INFO(json);
        REQUIRE(json.size() >= 8);
        const std::string inside = json.substr(6, json.size() - 8);
        for (std::size_t i = 0; i < inside.size(); ++i) {
            CHECK(static_cast<unsigned char>(inside[i]) >= 0x20);
            CHECK(inside[i] != '"');
            if (inside[i] == '\\') i += inside[i + 1] == 'u' ? 5 : 1;
        }
        CHECK(is_utf8(inside));
    }
}

TEST_CASE("a string is of bounded length") {
    CHECK(as_json(std::string(100'000, 'x')).size() < 1100);
    CHECK(as_json(std::string(100'000, '\n')).size() < 6200);
}

TEST_CASE("time is RFC 3339 in UTC with milliseconds") {
    CHECK(std::regex_match(rfc3339_now(),
                           std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z)")));
}

/// Without its time, which is the wall clock's.
std::string line_of(const Rig& rig) {
    REQUIRE(rig.log.size() == 1);
    const std::string& line = rig.log[0];
    REQUIRE(line.rfind(R"({"time":")", 0) == 0);
    return line.substr(line.find(',') + 1);
}

TEST_CASE("the line of a stream says where its time went") {
    Rig rig;
    Driven d(rig);
    d.until_sent();
    d.stream_head(40);
    d.read(100, tokens(1));
    d.meter.stalled(at(110));
    d.meter.resumed(at(115));
    d.read(140, tokens(1) + finish_event("stop") + usage_event(12, 5, 8, 1) + std::string(k_done));
    d.meter.upstream_done(at(140));
    d.meter.finish({Outcome::ok, 200, {}}, {101, 2000, 2001, 102}, at(141.5));
    CHECK(line_of(rig) ==
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
    CHECK(rig.log_errors.at(0) == (std::string_view(c.level) == "error"));
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
        ExchangeMeter meter(rig.telemetry, Endpoint::passthrough, false, "\xff\"", "GET", "/a\"b\n\\", at(0));
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
