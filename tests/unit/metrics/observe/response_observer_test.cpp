// How an answer may be framed and written, and still be understood; and what is not, goes by and is counted.

#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/unit/metrics/observe/observed.hpp"

using namespace noren::metrics;
using namespace noren::metrics::testing;
using namespace std::string_literals;

namespace {

const std::string k_soup = chat(R"({"content":"soup"})");
constexpr std::string_view k_done = "data: [DONE]\n\n";

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
        text.replace(at, what.size(), with);
    return text;
}

std::string times(std::size_t n, std::string_view part) {
    std::string all;
    for (std::size_t i = 0; i < n; ++i)
        all += part;
    return all;
}

}  // namespace

TEST_CASE("answer: line ends may be LF, CRLF or CR, and mixed") {
    const std::string body = k_soup + ": ping\n\n" + k_soup + std::string(k_done);
    for (const std::string_view end : {"\n", "\r\n", "\r"}) {
        const Observation o = observed(replaced(body, "\n", end));
        CHECK(o.token_events == 2);
        CHECK(o.complete);
        CHECK(o.unparsed_events == 0);
    }
    CHECK(observed(replaced(k_soup, "\n", "\r\n") + replaced(k_soup, "\n", "\r") + k_soup).token_events == 3);
}

TEST_CASE("answer: a token event ends behind its blank line, its LF included") {
    const std::string crlf = replaced(k_soup, "\n", "\r\n");
    CHECK(token_ends(k_soup + k_soup) == std::vector<std::uint64_t>{k_soup.size(), 2 * k_soup.size()});
    CHECK(token_ends(crlf + crlf) == std::vector<std::uint64_t>{crlf.size(), 2 * crlf.size()});
    CHECK(token_ends(k_soup.substr(0, k_soup.size() - 2)) == std::vector<std::uint64_t>{k_soup.size() - 2});
}

TEST_CASE("answer: byte order mark, comments, other fields and no space behind the colon") {
    CHECK(observed("\xef\xbb\xbf" + k_soup).token_events == 1);
    CHECK(observed(": OPENROUTER PROCESSING\n\n: x\nid: 1\nretry: 5\n" + k_soup).token_events == 1);
    CHECK(observed(replaced(k_soup, "data: ", "data:")).token_events == 1);
    CHECK(observed(replaced(k_soup, "data: ", "data:  ")).token_events == 1);
    CHECK(observed(replaced(k_soup, "data: ", "Data: ")).token_events == 0);
}

TEST_CASE("answer: data over several lines is one document") {
    CHECK(observed("data: {\"choices\":\ndata: [{\"index\":0,\ndata:\ndata: \"text\":\"soup\"}]}\n\n")
              .token_events == 1);
    // Whole in its first line, and then not.
    const std::string more = k_soup.substr(0, k_soup.size() - 1) + "data: {}\n\n";
    const Observation o = observed(k_soup + more + k_soup);
    CHECK(o.token_events == 2);
    CHECK(o.unparsed_events == 1);
    const std::string blanks = k_soup.substr(0, k_soup.size() - 1) + "data:  \t\ndata\n\n";
    CHECK(observed(k_soup + blanks).token_events == 2);
}

TEST_CASE("answer: of a list of embeddings or scores nothing is kept, and nothing is amiss") {
    const std::string vector = "[0.5" + times(9000, ",0.25") + "]";
    const Observation embeddings = observed("[" + vector + "," + vector + "]", k_json);
    CHECK(embeddings.complete);
    CHECK(embeddings.unparsed_events == 0);
    CHECK_FALSE(embeddings.output_tokens);
    const Observation scores = observed("[{}" + times(9000, R"(,{"index":1,"score":0.5})") + "]", k_json);
    CHECK(scores.complete);
    CHECK(scores.unparsed_events == 0);
}

namespace {

/// SGLang's account of one sequence.
std::string sequence(int index, int input, int output, int cached) {
    return R"({"text":"x","index":)" + std::to_string(index) + R"(,"meta_info":{"prompt_tokens":)" +
           std::to_string(input) + R"(,"completion_tokens":)" + std::to_string(output) +
           R"(,"cached_tokens":)" + std::to_string(cached) + R"(,"reasoning_tokens":1}})";
}

Observation of_each(std::string_view body, std::string_view content_type, std::int64_t of_each_prompt) {
    ResponseObserver observer(200, content_type, "");
    observer.feed(body);
    observer.finish();
    return observer.observation(of_each_prompt);
}

}  // namespace

TEST_CASE("answer: of several prompts each counts, of several sequences of one prompt it counts once") {
    const std::vector<std::string> two_prompts = {sequence(0, 7, 2, 4), sequence(1, 5, 3, 2)};
    const std::vector<std::string> two_of_each = {sequence(0, 7, 2, 4), sequence(1, 7, 3, 4),
                                                  sequence(2, 5, 4, 2), sequence(3, 5, 5, 2)};
    const bool as_stream = GENERATE(true, false);
    INFO(as_stream);
    const auto body_of = [&](const std::vector<std::string>& sequences) {
        std::string body = as_stream ? "data: " + sequence(0, 7, 1, 4) + "\n\n" : "[";
        for (std::size_t i = 0; i < sequences.size(); ++i)
            body += as_stream ? "data: " + sequences[i] + "\n\n" : (i == 0 ? "" : ",") + sequences[i];
        return body + (as_stream ? "data: [DONE]\n\n" : "]");
    };
    const std::string_view type = as_stream ? k_sse : k_json;
    const Observation prompts = observed(body_of(two_prompts), type);
    CHECK(prompts.input_tokens == 12);
    CHECK(prompts.cached_tokens == 6);
    CHECK(prompts.output_tokens == 5);
    CHECK(prompts.reasoning_tokens == 2);
    const Observation each_twice = of_each(body_of(two_of_each), type, 2);
    CHECK(each_twice.input_tokens == 12);
    CHECK(each_twice.cached_tokens == 6);
    CHECK(each_twice.output_tokens == 14);
    CHECK(each_twice.reasoning_tokens == 4);
    const Observation who_knows = of_each(body_of(two_of_each), type, 0);
    CHECK(who_knows.input_tokens == 5);
    CHECK(who_knows.cached_tokens == 2);
    CHECK(who_knows.output_tokens == 14);
    // Fewer came than were asked for; and one that is alone in its answer stands for all.
    CHECK(of_each(body_of({two_of_each[0], two_of_each[1]}), type, 4).input_tokens == 7);
    CHECK(of_each(body_of({two_of_each[0]}), type, 4).input_tokens == 7);
}

TEST_CASE("answer: the sum of some of many sequences does not pass for that of all") {
    const bool as_stream = GENERATE(true, false);
    const auto [many, enough] = as_stream ? std::pair(300, 256) : std::pair(3000, 300);
    const auto body_of = [&](int count) {
        std::string body;
        for (int i = 0; i < count; ++i)
            body += as_stream ? "data: " + sequence(i, 7, 2, 4) + "\n\n"
                              : (i == 0 ? "[" : ",") + sequence(i, 7, 2, 4);
        return body + (as_stream ? "data: [DONE]\n\n" : "]");
    };
    const std::string_view type = as_stream ? k_sse : k_json;
    INFO(as_stream);
    for (const std::int64_t each : {0, 1, 2}) {
        const Observation o = of_each(body_of(many), type, each);
        CHECK(o.complete);
        CHECK(o.output_tokens_source != TokenSource::usage);
        CHECK_FALSE(o.input_tokens);
        CHECK_FALSE(o.cached_tokens);
        CHECK_FALSE(o.reasoning_tokens);
        CHECK(o.unparsed_events == (as_stream ? 44 : 1));
    }
    const Observation all = observed(body_of(enough), type);
    CHECK(all.output_tokens == enough * 2);
    CHECK(all.input_tokens == enough * 7);
    CHECK(all.unparsed_events == 0);
}

TEST_CASE("answer: an account of the whole answer behind those of its sequences is no sequence's") {
    const std::string sequences =
        "data: " + sequence(0, 7, 2, 4) + "\n\ndata: " + sequence(1, 7, 3, 4) + "\n\n";
    const std::string whole = R"(data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":6}})"
                              "\n\n";
    for (const std::int64_t each : {0, 2}) {
        const Observation whole_last = of_each(sequences + whole + std::string(k_done), k_sse, each);
        CHECK(whole_last.input_tokens == 7);
        CHECK(whole_last.output_tokens == 6);
        CHECK(whole_last.cached_tokens == 4);
        const Observation whole_first = of_each(whole + sequences + std::string(k_done), k_sse, each);
        CHECK(whole_first.input_tokens == 7);
        CHECK(whole_first.output_tokens == 5);
        CHECK(whole_first.cached_tokens == 4);
    }
}

TEST_CASE("answer: of a list, an answer that reports nothing takes nothing from the others") {
    const std::string silent = R"({"text":"x"})", five = sequence(1, 5, 3, 2), seven = sequence(2, 7, 2, 4);
    for (const std::string& body :
         {silent + "," + five + "," + seven, five + "," + silent + "," + seven, "7," + five + "," + seven}) {
        INFO(body);
        const Observation o = observed("[" + body + "]", k_json);
        CHECK(o.input_tokens == 12);
        CHECK(o.output_tokens == 5);
    }
    CHECK(of_each("[" + silent + "," + five + "]", k_json, 2).input_tokens == 5);
    CHECK(of_each("[" + five + "," + seven + "]", k_json, -3).input_tokens == 7);
}

TEST_CASE("answer: one account for all sequences is taken as it is") {
    const std::string usage = R"({"choices":[{"index":0,"text":"x"},{"index":1,"text":"y"}],)"
                              R"("usage":{"prompt_tokens":7,"completion_tokens":5}})";
    CHECK(of_each(usage, k_json, 2).input_tokens == 7);
    CHECK(of_each("data: " + usage + "\n\n", k_sse, 2).input_tokens == 7);
}

TEST_CASE("answer: what is [DONE], and what only looks like it") {
    for (const std::string_view done :
         {"data: [DONE]\n\n", "data:[DONE]\n\n", "data:  [DONE] \n\n", "data: [DONE]\r\n\r\n", "data: [DONE]",
          "event: data\ndata: [DONE]\n\n", "data\ndata: [DONE]\n\n"}) {
        INFO(done);
        const Observation o = observed(k_soup + std::string(done));
        CHECK(o.complete);
        CHECK(o.unparsed_events == 0);
    }
    for (const std::string_view other :
         {"data: [done]\n\n", "data: [DONE]]\n\n", "data: [DONE\n\n", "data: [DO\ndata: NE]\n\n",
          "data: \"[DONE]\"\n\n", ": [DONE]\n\n", "event: [DONE]\n\n", "data: DONE\n\n"}) {
        INFO(other);
        CHECK_FALSE(observed(k_soup + std::string(other)).complete);
    }
    CHECK_FALSE(observed(chat(R"({"content":"[DONE]"})")).complete);
    CHECK_FALSE(observed("[DONE]\n", k_ndjson).complete);
}

TEST_CASE("answer: keys may be escaped, in any order, with blanks and twice") {
    CHECK(observed(R"(data: {"\u0063hoices":[{"d\u0065lta":{"\u0063ontent":"soup"}}]})"
                   "\n\n")
              .token_events == 1);
    CHECK(observed(
              "data: { \"choices\" : [ { \"delta\" : { \"content\" : \"soup\" } , \"index\" : 0 } ] } \n\n")
              .token_events == 1);
    // Of a key that comes twice the last counts, as a Python client sees it.
    CHECK(observed(chat(R"({"content":"soup","content":""})")).token_events == 0);
    CHECK(observed(chat(R"({"content":"","content":"soup"})")).token_events == 1);
    CHECK(observed(R"(data: {"choices":[{"delta":{"content":"soup"},"delta":{}}]})"
                   "\n\n")
              .token_events == 0);
}

TEST_CASE("answer: NUL, controls and bytes that are no UTF-8") {
    CHECK(observed(chat(R"({"content":"\u0000"})")).token_events == 1);
    CHECK(observed(chat("{\"content\":\"\xff\xfe\xc3\"}")).token_events == 1);
    CHECK(observed(chat(R"({"content":"\ud83d"})")).token_events == 1);
    const Observation raw = observed(chat("{\"content\":\"\0\"}"s) + k_soup);
    CHECK(raw.token_events == 1);
    CHECK(raw.unparsed_events == 1);
    CHECK(observed("\0\0\0"s + k_soup + k_soup).token_events == 1);
}

TEST_CASE("answer: numbers beyond 64 bits, fractions and negative ones are no counts, and break nothing") {
    const auto usage = [](std::string_view count) {
        return k_soup + R"(data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":)" +
               std::string(count) + "}}\n\n" + std::string(k_done);
    };
    CHECK(observed(usage("7")).output_tokens == 7);
    for (const std::string_view count : {"18446744073709551617", "1e400", "2.5", "NaN", "\"7\"", "null"}) {
        INFO(count);
        const Observation o = observed(usage(count));
        CHECK(o.output_tokens == 1);
        CHECK(o.output_tokens_source == TokenSource::events);
        CHECK(o.unparsed_events == 0);
        CHECK(o.complete);
    }
}

TEST_CASE("answer: an event of megabytes is understood; there is no bound on its size") {
    const std::string body = chat("{\"content\":\"" + std::string(3 << 20, 'x') + "\"}") + k_soup;
    ResponseObserver observer(200, k_sse, "");
    for (std::size_t at = 0; at < body.size(); at += 16'384)
        observer.feed(std::string_view(body).substr(at, 16'384));
    CHECK(observer.token_events() == 2);
    CHECK(observer.observation().unparsed_events == 0);
}

TEST_CASE("answer: what is over a bound goes by and is counted, and the stream is understood again") {
    SECTION("nested deeper than anything real") {
        const std::string deep = "data: " + times(600, "[") + times(600, "]") + "\n\n";
        const Observation o = observed(k_soup + deep + k_soup);
        CHECK(o.token_events == 2);
        CHECK(o.unparsed_events == 1);
    }
    SECTION("more choices than are kept: the first of them show that there is a token") {
        const std::string many = "data: {\"choices\":[" + times(5000, R"({"delta":{"content":"x"}},)") +
                                 "{}],\"usage\":{\"completion_tokens\":5000}}\n\n";
        ResponseObserver observer(200, k_sse, "");
        observer.feed(many + k_soup + std::string(k_done));
        const Observation o = observer.observation();
        CHECK(o.token_events == 2);
        CHECK(o.unparsed_events == 1);
        CHECK(o.output_tokens == 5000);
    }
    SECTION("no JSON object") {
        const Observation o =
            observed("data: soup\n\ndata: [1]\n\ndata: 7\n\ndata: {]\n\ndata: {\"a\":1\n\n" + k_soup);
        CHECK(o.token_events == 1);
        CHECK(o.unparsed_events == 5);
        CHECK_FALSE(o.error);
    }
    SECTION("nothing at all is no fault") {
        CHECK(observed("data:\n\ndata: \n\ndata\n\n" + k_soup).unparsed_events == 0);
    }
}

TEST_CASE("answer: lines of JSON") {
    const std::string line = R"({"model":"m","message":{"content":"soup"},"done":false})";
    CHECK(observed(line + "\n" + line + "\r\n\n" + line, k_ndjson).token_events == 3);
    const Observation o =
        observed(line + "\nnonsense\n" + R"({"done":true,"eval_count":5})" + "\n", k_ndjson);
    CHECK(o.token_events == 1);
    CHECK(o.unparsed_events == 1);
    CHECK(o.complete);
    CHECK(o.output_tokens == 5);
    CHECK(token_ends(line + "\r\n", k_ndjson) == std::vector<std::uint64_t>{line.size() + 2});
}

TEST_CASE("answer: the media type decides what a body is, its parameters and its case do not") {
    CHECK(observed(k_soup, "Text/Event-Stream; charset=utf-8").streaming);
    CHECK(observed(k_soup, " text/event-stream ;x").token_events == 1);
    CHECK(observed("{}\n", "application/jsonl").streaming);
    CHECK_FALSE(observed("{}", "application/problem+json").streaming);
    CHECK(observed("{\"error\":{\"message\":\"x\"}}", "application/problem+json").error);
    CHECK_FALSE(observed(k_soup, "text/plain").streaming);
    CHECK(observed(k_soup, "").token_events == 0);
    CHECK(observed("{}", k_json, 404).error);
}

TEST_CASE("answer: many events in one read, and one event in many reads, count the same") {
    const std::string body = times(300, k_soup) + std::string(k_done);
    for (const std::size_t size : {1UL, 3UL, 16UL, 64UL, 100UL, 1000UL, 65536UL}) {
        ResponseObserver observer(200, k_sse, "");
        std::uint64_t events = 0;
        for (std::size_t at = 0; at < body.size(); at += size)
            events += observer.feed(std::string_view(body).substr(at, size));
        INFO("pieces of " << size);
        CHECK(events == 300);
        CHECK(observer.observation().complete);
    }
}
