#include "proxy/cli/observe_command.hpp"

#include <sstream>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

using Catch::Matchers::Contains;

const std::string k_two_tokens =
    "data: {\"choices\":[{\"text\":\"a\"}]}\r\n\r\ndata: {\"choices\":[{\"text\":\"b\"}]}\r\n\r\ndata: "
    "[DONE]\r\n\r\n";

struct Said {
    int exit_status;
    std::string out, err;
};

Said observe(const std::string& body, ObserveOptions options) {
    const test::TempDir dir;
    test::write_file(dir / "body", body);
    options.file = (dir / "body").string();
    std::ostringstream out, err;
    const int exit_status = observe_command(options, out, err);
    return {exit_status, out.str(), err.str()};
}

Said observe_split(const std::string& body, const std::string& split) {
    ObserveOptions options;
    options.split = split;
    return observe(body, options);
}

TEST_CASE("observe prints the same report however the body is fed") {
    const Said whole = observe(k_two_tokens, {});
    CHECK(whole.exit_status == 0);
    CHECK(whole.err.empty());
    CHECK_THAT(whole.out, Contains("\"token_events\":2") && Contains("\"complete\":true"));
    CHECK(observe_split(k_two_tokens, "1").out == whole.out);
    CHECK(observe_split(k_two_tokens, "all").out == whole.out);
}

TEST_CASE("observe --split all says at how many places it has cut") {
    const std::string places = std::to_string(k_two_tokens.size() + 1);
    CHECK_THAT(observe_split(k_two_tokens, "all").err,
               Contains("cut in two at " + places + " of " + places + " places"));
    CHECK_THAT(observe_split("", "all").err, Contains("cut in two at 1 of 1 places"));
}

TEST_CASE("observe --split all cuts a body above 1 MiB at fewer places, and says so") {
    ObserveOptions options;
    options.split = "all";
    options.content_encoding = "gzip";  // opaque, so that feeding it takes no time
    CHECK_THAT(observe(std::string(1048577, 'x'), options).err,
               Contains("cut in two at 262145 of 1048578 places"));
}

TEST_CASE("observe says that a capture has its head in it") {
    for (const char* line : {"HTTP/1.1 200 OK\r\n", "HTTP/2 200 \r\n", "HTTP/1.0 200 OK\n"}) {
        const Said said =
            observe(line + std::string("content-type: text/event-stream\r\n\r\n") + k_two_tokens, {});
        CHECK(said.exit_status == 2);
        CHECK(said.out.empty());
        CHECK_THAT(said.err, Contains("begins with an HTTP head; give the body only"));
    }
    CHECK(observe("HTTP/1.1\n", {}).exit_status == 0);
    CHECK(observe("an HTTP/1.1 200 further on\n", {}).exit_status == 0);
}

TEST_CASE("observe says why there is no first token") {
    const auto why = [](const std::string& body, ObserveOptions options = {}) {
        const Said said = observe(body, std::move(options));
        CHECK(said.exit_status == 0);
        CHECK_THAT(said.out, Contains("\"first_token_event_offset\":null"));
        return said.err;
    };
    const std::string start = "noren observe: no time to first token: ";
    CHECK(why("") == start + "the body is empty\n");
    CHECK(why("{\"choices\":[{\"text\":\"a\"}]}") ==
          start +
              "it is not streamed: its Content-Type, by its first bytes, is application/json, not "
              "text/event-stream or application/x-ndjson\n");
    for (const char* neither : {"hello\n", "<html>", "upstream connect error"})
        CHECK_THAT(why(neither),
                   Contains("neither an event stream nor JSON; --content-type says what it is\n"));
    ObserveOptions typed;
    typed.content_type = "text/plain";
    CHECK_THAT(why(k_two_tokens, typed), Contains("its Content-Type is text/plain, not"));
    ObserveOptions packed;
    packed.content_encoding = "gzip";
    CHECK_THAT(why("\x1f\x8b", packed), Contains("its Content-Encoding is gzip"));
    CHECK(why("data: {\"choices\":[]}\n\n") == start + "no event of it has a token\n");
    CHECK_THAT(why("data: {\"error\":{\"message\":\"no\"}}\n\n"), Contains("it is an error, and no event"));
    CHECK_THAT(why("data: soup\n\ndata: [1]\n\n"), Contains("has a token; 2 were no JSON object"));
}

TEST_CASE("observe refuses what is no way of splitting, and a file it cannot read") {
    for (const char* split : {"0", "-1", "1k", "every"}) {
        const Said said = observe_split(k_two_tokens, split);
        CHECK(said.exit_status == 2);
        CHECK(said.out.empty());
        CHECK_THAT(said.err, Contains("--split"));
    }
    ObserveOptions missing;
    missing.file = "/dev/null/body";
    std::ostringstream out, err;
    CHECK(observe_command(missing, out, err) == 2);
    CHECK_THAT(err.str(), Contains("cannot read"));
}

}  // namespace
}  // namespace noren::proxy
