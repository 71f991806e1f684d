#include "metrics/observe/sse_framer.hpp"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/observe/recording_sink.hpp"

using namespace noren::metrics;
using namespace noren::metrics::testing;

namespace {

using Lines = std::vector<std::string>;

/// The same however the body is cut; that is part of every expectation here.
Lines events_of(std::string_view body) {
    const Lines whole = framed_in_pieces<SseFramer>(body, body.size() + 1);
    REQUIRE(framed_in_pieces<SseFramer>(body, 1) == whole);
    for (std::size_t cut = 0; cut <= body.size(); ++cut) {
        INFO("cut at " << cut);
        REQUIRE(framed_cut_at<SseFramer>(body, cut) == whole);
    }
    return whole;
}

/// The definition again, over a whole body: lines first, then fields. Slow and plain, to judge the framer by.
Lines plainly_framed(std::string body) {
    Lines events;
    std::size_t at = body.rfind("\xef\xbb\xbf", 0) == 0 ? 3 : 0;
    std::size_t start = at;
    std::string data, name;
    bool has_data = false;
    const auto dispatch = [&](std::size_t end) {
        if (has_data)
            events.push_back("[" + std::to_string(start) + "," + std::to_string(end) + ") " +
                             (name == "error" ? "!" : "") + data);
        start = end;
        data.clear();
        name.clear();
        has_data = false;
    };
    while (at < body.size()) {
        const std::size_t stop = std::min(body.find_first_of("\r\n", at), body.size());
        const std::string line = body.substr(at, stop - at);
        const bool ended = stop < body.size();
        at = stop + (body.compare(stop, 2, "\r\n") == 0 ? 2 : ended ? 1 : 0);
        if (line.empty()) {
            dispatch(at);
            continue;
        }
        const std::size_t colon = line.find(':');
        std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
        if (!value.empty() && value.front() == ' ') value.erase(0, 1);
        const std::string field = line.substr(0, colon);
        if (field == "event") name = value;
        if (field != "data") continue;
        data += (has_data ? "\n" : "") + value;
        has_data = true;
    }
    dispatch(body.size());
    return events;
}

}  // namespace

TEST_CASE("SSE: a blank line ends an event; it ends behind that line") {
    CHECK(events_of("data: a\n\ndata: b\n\n") == Lines{"[0,9) a", "[9,18) b"});
    CHECK(events_of("").empty());
    CHECK(events_of("\n\n\n").empty());
}

TEST_CASE("SSE: lines end in LF, CRLF or CR, mixed at will") {
    CHECK(events_of("data: a\r\n\r\ndata: b\r\n\r\n") == Lines{"[0,11) a", "[11,22) b"});
    CHECK(events_of("data: a\r\rdata: b\r\r") == Lines{"[0,9) a", "[9,18) b"});
    CHECK(events_of("data: a\r\n\ndata: b\n\r\ndata: c\r\r\n") ==
          Lines{"[0,10) a", "[10,20) b", "[20,30) c"});
    CHECK(events_of("data: a\n\r") == Lines{"[0,9) a"});
    CHECK(events_of("\r\n\r\ndata: a\r\n\r\n\r\n") == Lines{"[4,15) a"});
}

TEST_CASE("SSE: in CRLF the event is told at the CR, its end corrected by the LF") {
    SseFramer framer;
    RecordingSink sink;
    framer.feed("data: a\r\n\r", sink);
    REQUIRE(sink.written() == Lines{"[0,10) a"});
    framer.feed("\n", sink);
    CHECK(sink.written() == Lines{"[0,11) a"});
}

TEST_CASE("SSE: comments, unknown fields, id and retry say nothing but belong to their event") {
    CHECK(events_of(": ping\n\n: ping\n\ndata: a\n\n") == Lines{"[16,25) a"});
    CHECK(events_of(": c\nid: 7\nretry: 10\ndatax: no\ndat: no\n Data: no\ndata: a\n: d\n\n") ==
          Lines{"[0,61) a"});
    CHECK(events_of("event: only\n\ndata: a\n\n") == Lines{"[13,22) a"});
}

TEST_CASE("SSE: one space behind the colon is dropped, no more") {
    CHECK(events_of("data:a\n\ndata:  b \n\ndata: \n\ndata:\n\n") ==
          Lines{"[0,8) a", "[8,19)  b ", "[19,27) ", "[27,34) "});
    CHECK(events_of("data : a\n\n").empty());
}

TEST_CASE("SSE: data lines are joined with LF; a line without a colon is a field name") {
    CHECK(events_of("data: a\ndata: b\r\ndata\ndata: c\n\n") == Lines{"[0,31) a\nb\n\nc"});
    CHECK(events_of("data\n\n") == Lines{"[0,6) "});
    CHECK(events_of("data:a:b: c\n\n") == Lines{"[0,13) a:b: c"});
}

TEST_CASE("SSE: the event name is known, the last one of an event counts, none outlives it") {
    CHECK(events_of("event: error\ndata: a\n\ndata: b\n\n") == Lines{"[0,22) !a", "[22,31) b"});
    CHECK(events_of("data: a\nevent:error\n\n") == Lines{"[0,21) !a"});
    CHECK(events_of("event: error\nevent: ok\ndata: a\n\n") == Lines{"[0,32) a"});
    CHECK(events_of("event: error\nevent\ndata: a\n\n") == Lines{"[0,28) a"});
    CHECK(events_of("event: errors\ndata: a\n\nevent: error of ours\ndata: b\n\n") ==
          Lines{"[0,23) a", "[23,53) b"});
    CHECK(events_of("event: error\n\ndata: a\n\n") == Lines{"[14,23) a"});
}

TEST_CASE("SSE: one byte order mark at the very start is no part of the first event") {
    CHECK(events_of("\xef\xbb\xbf"
                    "data: a\n\n") == Lines{"[3,12) a"});
    CHECK(events_of("\xef\xbb\xbf\xef\xbb\xbf"
                    "data: a\n\n")
              .empty());
    CHECK(events_of("\xef\xbb"
                    "data: a\n\ndata: b\n\n") == Lines{"[11,20) b"});
    CHECK(events_of("\n\xef\xbb\xbf"
                    "data: a\n\n")
              .empty());
    CHECK(events_of("\xef\xbb\xbf").empty());
    CHECK(events_of("\xef").empty());
}

TEST_CASE("SSE: what the body ends in counts if it has data") {
    CHECK(events_of("data: a\n\ndata: b") == Lines{"[0,9) a", "[9,16) b"});
    CHECK(events_of("data: a\n") == Lines{"[0,8) a"});
    CHECK(events_of("data: a\nda") == Lines{"[0,10) a"});
    CHECK(events_of("data") == Lines{"[0,4) "});
    CHECK(events_of("event: error").empty());
    CHECK(events_of("event: error\ndata: a") == Lines{"[0,20) !a"});
}

TEST_CASE("SSE: the framer agrees with the plain definition on random bodies") {
    std::mt19937 random(42);
    const std::vector<std::string> parts = {
        "data", "data: ", "data:", ":",    "event: error", "event",        " ",    "x",     "\n",
        "\r",   "\r\n",   "\n\n",  "\r\r", "id: 1",        "\xef\xbb\xbf", "\xef", "error", "event:"};
    for (int round = 0; round < 20'000; ++round) {
        std::string body;
        for (auto left = random() % 14; left > 0; --left)
            body += parts[random() % parts.size()];
        INFO("round " << round << ": " << body);
        const Lines expected = plainly_framed(body);
        REQUIRE(framed_in_pieces<SseFramer>(body, body.size() + 1) == expected);
        REQUIRE(framed_in_pieces<SseFramer>(body, 1) == expected);
        REQUIRE(framed_cut_at<SseFramer>(body, random() % (body.size() + 1)) == expected);
    }
}
