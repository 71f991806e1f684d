#include "metrics/observe/ndjson_framer.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/observe/recording_sink.hpp"

using namespace noren::metrics;
using namespace noren::metrics::testing;

namespace {

using Lines = std::vector<std::string>;

/// JSON's own blanks behind a document may be handed on or not.
Lines trimmed(Lines events) {
    for (std::string& event : events)
        event.erase(event.find_last_not_of(" \t\r") + 1);
    return events;
}

/// The same however the body is cut; that is part of every expectation here.
Lines events_of(std::string_view body) {
    const Lines whole = trimmed(framed_in_pieces<NdjsonFramer>(body, body.size() + 1));
    REQUIRE(trimmed(framed_in_pieces<NdjsonFramer>(body, 1)) == whole);
    for (std::size_t cut = 0; cut <= body.size(); ++cut) {
        INFO("cut at " << cut);
        REQUIRE(trimmed(framed_cut_at<NdjsonFramer>(body, cut)) == whole);
    }
    return whole;
}

}  // namespace

TEST_CASE("NDJSON: a line is an event, it ends behind its LF") {
    CHECK(events_of("{1}\n{2}\n") == Lines{"[0,4) {1}", "[4,8) {2}"});
    CHECK(events_of("").empty());
}

TEST_CASE("NDJSON: a last line without LF counts") {
    CHECK(events_of("{1}\n{2}") == Lines{"[0,4) {1}", "[4,7) {2}"});
}

TEST_CASE("NDJSON: a CR alone ends nothing") {
    CHECK(events_of("{1}\r{2}\n").size() == 1);
}

TEST_CASE("NDJSON: blanks in front of the document are left out, offsets are the line's") {
    CHECK(events_of("  \t{1}\n\r\n{2}\n") == Lines{"[0,7) {1}", "[7,9)", "[9,13) {2}"});
}

TEST_CASE("NDJSON: control characters at the edges are blanks, inside they stay") {
    CHECK(events_of("\v{1}\f\v \n{2}\x1c") == Lines{"[0,8) {1}", "[8,12) {2}"});
    const Lines inside = events_of("{\f1}\n");
    REQUIRE(inside.size() == 1);
    CHECK(inside[0].find('\f') != std::string::npos);
}
