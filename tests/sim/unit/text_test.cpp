// The small sans-IO parts: token text, JSON text, faults, truth lines.

#include <set>

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/sim/fault.hpp"
#include "tests/sim/json_text.hpp"
#include "tests/sim/token_text.hpp"
#include "tests/sim/truth.hpp"

using namespace sim;

TEST_CASE("hashes are the published ones") {
    CHECK(fnv1a("") == 0xcbf29ce484222325ULL);
    CHECK(fnv1a("a") == 0xaf63dc4c8601ec8cULL);
    CHECK(fnv1a("foobar") == 0x85944171f73967e8ULL);
    CHECK(fnv1a("bar", fnv1a("foo")) == fnv1a("foobar"));
    CHECK(mix(0) == 0xe220a8397b1dcdafULL);  // first output of splitmix64 seeded with 0
}

TEST_CASE("token text depends on request, choice and index, and on nothing else") {
    const std::uint64_t key = stream_key("req-1");
    CHECK(token_text(key, 0, 5) == token_text(key, 0, 5));
    const auto differing = [](std::string_view a, std::string_view b) { return a != b; };
    int by_choice = 0;
    int by_request = 0;
    std::set<std::string_view> seen;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        by_choice += differing(token_text(key, 0, i), token_text(key, 1, i)) ? 1 : 0;
        by_request += differing(token_text(key, 0, i), token_text(stream_key("req-2"), 0, i)) ? 1 : 0;
        seen.insert(token_text(key, 0, i));
    }
    CHECK(by_choice > 900);
    CHECK(by_request > 900);
    CHECK(seen.size() == k_vocabulary.size());
}

TEST_CASE("slices join to the whole text, however they are cut") {
    const std::uint64_t key = stream_key("x");
    const std::string whole = whole_text(key, 2, 10);
    CHECK(whole_text(key, 2, 10, 3) == whole);
    CHECK(slice_text(key, 2, 0, 4) + slice_text(key, 2, 4, 6) == whole);
}

TEST_CASE("sized text has exactly that size and tells its place") {
    const std::uint64_t key = stream_key("x");
    for (std::uint32_t size : {1U, 2U, 17U, 4000U})
        CHECK(slice_text(key, 0, 7, 1, size).size() == size);
    CHECK(slice_text(key, 0, 7, 1, 40).starts_with("7:"));
    CHECK(slice_text(key, 0, 7, 1, 40) != slice_text(key, 0, 8, 1, 40));
    CHECK(whole_text(key, 0, 10, 4, 50).size() == 150);
}

TEST_CASE("quoted text is JSON and reads back the same") {
    std::string all;
    for (int c = 0; c < 0x80; ++c)
        all += static_cast<char>(c);
    all += "\xF0\x9F\x8D\x9C";
    for (Escapes escapes : {Escapes::plain, Escapes::go}) {
        const std::string text = quoted(all, escapes);
        CHECK(boost::json::parse(text).as_string() == boost::json::string_view(all));
    }
    CHECK(quoted("<&>", Escapes::go) == R"("\u003c\u0026\u003e")");
    CHECK(quoted("<&>") == R"("<&>")");
}

TEST_CASE("faults read back as written") {
    for (const char* text : {"reset@0", "cut@100", "stall@7", "garbage", "early:413", "slow-head:250",
                             "bad-chunk", "no-final-chunk", "error@3", "close-before-head",
                             "reset-before-head", "huge-head:70000", "close-after"}) {
        const auto fault = parse_fault(text);
        REQUIRE(fault);
        CHECK(to_string(*fault) == text);
    }
    CHECK(parse_fault("huge-head")->at == 1U << 20U);
    CHECK(to_string(Fault{}).empty());
}

TEST_CASE("what is no fault is refused") {
    for (const char* text :
         {"", "none", "reset", "reset@", "reset@x", "reset@-1", "reset:5", "reset@5 ", "resetting@5",
          "garbage@1", "early:99", "early:600", "early", "huge-head:99999999999", "error@1x"}) {
        INFO(text);
        CHECK_FALSE(parse_fault(text));
    }
}

TEST_CASE("a truth is one JSON line with everything in it") {
    Truth truth;
    truth.id = "a\"b\n";
    truth.api = "openai.chat";
    truth.outcome = "complete";
    truth.status = 200;
    truth.stream = true;
    truth.arrival = TimePoint(std::chrono::nanoseconds(5'000'000'001));
    truth.head_sent = TimePoint(std::chrono::nanoseconds(6));
    truth.events = {{TimePoint(std::chrono::nanoseconds(7)), 0}, {TimePoint(std::chrono::nanoseconds(8)), 3}};
    truth.usage = Usage{11, 3};
    truth.answer_fnv = 0xab;
    const std::string line = to_json_line(truth);
    CHECK(line.back() == '\n');
    CHECK(line.find('\n') == line.size() - 1);
    const auto value = boost::json::parse(line).as_object();
    CHECK(value.at("id").as_string() == "a\"b\n");
    CHECK(value.at("arrival_ns").as_int64() == 5'000'000'001);
    CHECK(value.at("head_sent_ns").as_int64() == 6);
    CHECK(value.at("body_read_ns").is_null());
    CHECK(value.at("cancel_seen_ns").is_null());
    CHECK(value.at("usage").as_object().at("completion_tokens").as_int64() == 3);
    CHECK(value.at("answer_fnv").as_string() == "00000000000000ab");
    CHECK(boost::json::serialize(value.at("events")) == "[[7,0],[8,3]]");
    CHECK(value.at("stream").as_bool());
}

TEST_CASE("a truth file that cannot be written is an error at once") {
    CHECK_THROWS_AS(TruthLog("/dev/null/truth.jsonl", false), std::system_error);
}
