#include "tests/bench/load/verdict.hpp"

#include <cstdio>

#include <catch2/catch.hpp>

#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"

namespace {

using namespace load;

struct Answer {
    Reading reading;
    AnswerReader reader{[this](const Event& event) { reading.take(Api::chat, event); }};

    explicit Answer(const std::string& events, const std::string& fields = "Server: noren-sim\r\n",
                    const std::string& status = "200 OK") {
        REQUIRE(reader.feed("HTTP/1.1 " + status + "\r\nContent-Type: text/event-stream\r\n" + fields +
                            "\r\n" + events));
        REQUIRE(reader.closed());
    }

    std::string error(std::optional<std::uint32_t> asked = std::nullopt) const {
        const SimText text(Api::chat, {});
        return judge(Api::chat, reader, reading, {"load-1-0", asked, &text}).error;
    }
};

std::string token_event(std::uint32_t index) {
    std::string text;  // escaped as JSON wants it
    for (const char c : sim::token_text(sim::stream_key("load-1-0"), 0, index)) {
        if (c == '\n')
            text += "\\n";
        else if (c == '\r')
            text += "\\r";
        else if (c == '\t')
            text += "\\t";
        else if (c == '"' || c == '\\')
            text += std::string("\\") + c;
        else
            text += c;
    }
    return "data: {\"choices\":[{\"delta\":{\"content\":\"" + text + "\"}}]}\n\n";
}

const std::string k_usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":4}}\n\n";
const std::string k_done = "data: [DONE]\n\n";

}  // namespace

TEST_CASE("the right text is right; with a token gone, doubled or swapped it is altered") {
    const std::string t0 = token_event(0), t1 = token_event(1), t2 = token_event(2), t3 = token_event(3);
    CHECK(Answer(t0 + t1 + t2 + t3 + k_usage + k_done).error() == "");
    CHECK(Answer(t0 + t1 + t3 + k_usage + k_done).error() == "altered");
    CHECK(Answer(t0 + t1 + t2 + k_usage + k_done).error() == "altered");
    CHECK(Answer(t0 + t1 + t1 + t2 + t3 + k_usage + k_done).error() == "altered");
    CHECK(Answer(t1 + t0 + t2 + t3 + k_usage + k_done).error() == "altered");
    CHECK(Answer(k_usage + k_done).error() == "altered");
    // Without a count the number asked for tells a loss at the end; without either it cannot be known.
    CHECK(Answer(t0 + t1 + t2 + k_done).error(4) == "altered");
    CHECK(Answer(t0 + t1 + t2 + t3 + k_done).error(4) == "");
    CHECK(Answer(t0 + t1 + t2 + k_done).error() == "");
}

TEST_CASE("what else is wrong with an answer") {
    const std::string t0 = token_event(0);
    CHECK(Answer(t0).error() == "no_end_marker");
    CHECK(Answer(t0 + "data: {\"error\":{}}\n\n" + k_done).error() == "engine_error");
    CHECK(Answer(t0 + "data: {broken\n\n" + k_done).error() == "unparsable");
    CHECK(Answer(t0 + k_done, "x-request-id: load-1-1\r\n").error() == "wrong_answer");
    CHECK(Answer(t0 + k_done, "x-request-id: req-of-the-engine\r\n").error() == "");
    CHECK(Answer("", "", "503 Busy").error() == "");
    CHECK(Answer(token_event(1) + k_done, "Server: vllm\r\n").error() == "");  // not ours to know
}

TEST_CASE("no byte of a body can change unnoticed once the engine has told its hash") {
    const std::string body = token_event(0) + token_event(1) + ": a comment\n\n" + k_done;
    const auto error_of = [](const std::string& got, std::uint64_t hash, bool behind,
                             const char* status = "200 OK") {
        const std::string digest = sim::concat("x-sim-body-fnv1a64: ", sim::hex(hash), "\r\n");
        char size[17];
        std::snprintf(size, sizeof size, "%zx", got.size());
        Reading reading;
        AnswerReader reader{[&](const Event& event) { reading.take(Api::chat, event); }};
        REQUIRE(reader.feed(sim::concat("HTTP/1.1 ", status,
                                        "\r\nContent-Type: text/event-stream\r\nServer: noren-sim\r\n",
                                        behind ? "" : digest, "Transfer-Encoding: chunked\r\n\r\n", size,
                                        "\r\n", got, "\r\n0\r\n", behind ? digest : "", "\r\n")));
        REQUIRE(reader.whole());
        const SimText text(Api::chat, {});
        const Verdict verdict = judge(Api::chat, reader, reading, {"load-1-0", 2, &text});
        CHECK(verdict.body_checked);
        return verdict.error;
    };
    const std::uint64_t hash = sim::fnv1a(body);
    for (const bool behind : {false, true}) {
        CHECK(error_of(body, hash, behind) == "");
        for (std::size_t i = 0; i < body.size(); ++i) {
            std::string changed = body;
            changed[i] = static_cast<char>(changed[i] ^ 1);
            INFO("byte " << i);
            CHECK(error_of(changed, hash, behind) != "");
        }
        CHECK(error_of(body + " ", hash, behind) == "altered");
    }
    CHECK(error_of(body, hash ^ 1, true) == "altered");
    CHECK(error_of(body, hash, true, "503 Busy") == "");
    CHECK(error_of(body, hash ^ 1, true, "503 Busy") == "altered");
}

TEST_CASE("without a hash, or with checks off, a body counts as unchecked") {
    const Answer answer(token_event(0) + k_done);
    const SimText text(Api::chat, {});
    CHECK_FALSE(judge(Api::chat, answer.reader, answer.reading, {"load-1-0", 1, &text}).body_checked);
    const Answer hashed(token_event(0) + k_done, "x-sim-body-fnv1a64: 0\r\n");
    const Verdict unasked = judge(Api::chat, hashed.reader, hashed.reading, {"load-1-0", 1, nullptr});
    CHECK_FALSE(unasked.body_checked);
    CHECK(unasked.error == "");
}

TEST_CASE("how a text differs") {
    CHECK(compare("abcdef", "abcdef").same());
    const TextCheck lost = compare("abcdef", "abef");
    CHECK(lost.lost == 2);
    CHECK(lost.at == 2);
    CHECK(lost.words() == "2 bytes lost at byte 2 of the text");
    CHECK(compare("abc", "").lost == 3);
    CHECK(compare("abcdef", "abcd").lost == 2);
    CHECK(compare("abcdef", "abcdcdef").extra == 2);
    CHECK(compare("", "x").words() == "1 byte too many at byte 0 of the text");
    const TextCheck altered = compare("abcdef", "aXcdeY");
    CHECK(altered.altered == 2);
    CHECK(altered.at == 1);
    CHECK(altered.lost + altered.extra == 0);
    CHECK(compare("abcdef", "xbcde").altered == 2);  // neither a hole nor a surplus alone
}

TEST_CASE("a simulator's text follows what our headers ask of it") {
    const std::uint64_t key = sim::stream_key("id");
    const auto check = [](const SimText& text, const std::string& got,
                          std::optional<std::uint64_t> reported) {
        return text.check("id", {{0, got}}, reported, std::nullopt);
    };
    CHECK(check(SimText(Api::chat, {}), sim::whole_text(key, 0, 7), 7).same());
    const SimText sized(Api::chat, {"X-Sim-Bytes: 12", "x-sim-tokens-per-event:3"});
    CHECK(check(sized, sim::whole_text(key, 0, 7, 3, 12), 7).same());
    CHECK(check(sized, sim::whole_text(key, 0, 7, 3, 12), std::nullopt).same());
    CHECK_FALSE(check(sized, sim::whole_text(key, 0, 7, 1, 12), 7).same());
    // TGI sends a token an event whatever was asked.
    CHECK(check(SimText(Api::tgi, {"x-sim-bytes: 12", "x-sim-tokens-per-event: 3"}),
                sim::whole_text(key, 0, 7, 1, 12), 7)
              .same());
    const SimText fixed(Api::triton, {"x-sim-tokens: 5"});
    CHECK(check(fixed, sim::whole_text(key, 0, 5), std::nullopt).same());
    CHECK(check(fixed, sim::whole_text(key, 0, 4), std::nullopt).lost > 0);

    // Two choices share the count and differ in text.
    const SimText plain(Api::chat, {});
    CHECK(
        plain.check("id", {{0, sim::whole_text(key, 0, 3)}, {1, sim::whole_text(key, 1, 3)}}, 6, {}).same());
    CHECK_FALSE(
        plain.check("id", {{0, sim::whole_text(key, 0, 3)}, {1, sim::whole_text(key, 0, 3)}}, 6, {}).same());
}
