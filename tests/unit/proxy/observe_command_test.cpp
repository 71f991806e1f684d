#include "proxy/cli/observe_command.hpp"

#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include "tests/unit/config/temp_dir.hpp"

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
