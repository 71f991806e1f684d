#include "tests/bench/load/event_framer.hpp"

#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

namespace {

using load::EventFramer;
using Events = std::vector<std::pair<std::string, std::string>>;

Events events_of(EventFramer::Kind kind, std::string_view body, std::size_t split, bool finish = true) {
    Events events;
    EventFramer framer(kind, [&](const load::Event& e) { events.emplace_back(e.name, e.data); });
    framer.feed(body.substr(0, split));
    framer.feed(body.substr(split));
    if (finish) framer.finish();
    return events;
}

void check_all_splits(EventFramer::Kind kind, const std::string& body, const Events& expected) {
    for (std::size_t split = 0; split <= body.size(); ++split) {
        INFO("split at " << split);
        CHECK(events_of(kind, body, split) == expected);
    }
}

}  // namespace

TEST_CASE("SSE: line ends of every kind, comments, unknown fields, one blank after the colon") {
    check_all_splits(EventFramer::Kind::sse,
                     "\xEF\xBB\xBF"
                     "data: bom\n\n"
                     ": comment\n\n"
                     "event: named\ndata:no blank\n\n"
                     "id: 7\ndata:  two blanks\r\n\r\n"
                     "data: cr\r\r"
                     "data: a\ndata: b\n\n"
                     "data\n\n"
                     "event: nothing\n\n"
                     "retry: 5\r\ndata: {\"x\":1}\r\n\r\n",
                     {{"", "bom"},
                      {"named", "no blank"},
                      {"", "two blanks"},
                      {"", "cr"},
                      {"", "a\nb"},
                      {"", "{\"x\":1}"}});
}

TEST_CASE("SSE: an event that lacks its blank line, or even its line end, counts at the end only") {
    const std::string body = "data: 1\n\ndata: 2";
    check_all_splits(EventFramer::Kind::sse, body, {{"", "1"}, {"", "2"}});
    CHECK(events_of(EventFramer::Kind::sse, body, 3, false) == Events{{"", "1"}});
}

TEST_CASE("NDJSON: a document per line, blank lines and CRs around it are nothing") {
    const std::string body = "{\"a\":1}\n\r\n {\"b\":2} \r\n{\"c\":\"\\n\"}\n{\"d\":4}";
    check_all_splits(EventFramer::Kind::ndjson, body,
                     {{"", "{\"a\":1}"}, {"", "{\"b\":2}"}, {"", "{\"c\":\"\\n\"}"}, {"", "{\"d\":4}"}});
    CHECK(events_of(EventFramer::Kind::ndjson, body, 0, false).size() == 3);
}
