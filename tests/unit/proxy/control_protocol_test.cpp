#include "proxy/ops/control_protocol.hpp"

#include <string>
#include <variant>

#include <catch2/catch.hpp>

namespace noren::proxy {

using Kind = ControlCommand::Kind;

namespace {

ControlCommand parsed(std::string_view words) {
    return std::get<ControlCommand>(parse_control_command(words));
}

std::string refused(std::string_view words) {
    return std::get<std::string>(parse_control_command(words));
}

}  // namespace

TEST_CASE("each command has its words, and no others") {
    CHECK(parsed("reload") == ControlCommand{Kind::reload, 0});
    CHECK(parsed("drain") == ControlCommand{Kind::drain, 0});
    CHECK(parsed("undrain") == ControlCommand{Kind::undrain, 0});
    CHECK(parsed("status") == ControlCommand{Kind::status, 0});
    CHECK(parsed("ready") == ControlCommand{Kind::ready, 0});
    for (const char* words : {"", " drain", "drain ", "Drain", "drain now", "limit", "limit48", "explode"}) {
        INFO(words);
        CHECK(refused(words) == "unknown command; there are reload, drain, undrain, status, ready, limit N");
    }
}

TEST_CASE("the number of a limit follows the rule of the config key") {
    CHECK(parsed("limit 48") == ControlCommand{Kind::limit, 48});
    CHECK(parsed("limit 0") == ControlCommand{Kind::limit, 0});
    for (const char* words : {"limit ", "limit -1", "limit 4x", "limit 1.5", "limit 99999999999"}) {
        INFO(words);
        CHECK(refused(words).starts_with("limit: found "));
    }
}

TEST_CASE("what ctl says is what noren hears, with U+FFFD for what is no text") {
    std::string heard;
    const auto hear = [&](std::string_view words) {
        heard = words;
        return control_answer(true, "done");
    };
    CHECK(answer_control(control_line("limit 48"), hear) == "{\"ok\":true,\"message\":\"done\"}\n");
    CHECK(heard == "limit 48");
    answer_control(control_line("a\n\"\\\xff"), hear);
    CHECK(heard == "a\n\"\\\xef\xbf\xbd");
}

TEST_CASE("only the first line counts") {
    int commands = 0;
    const auto count = [&](std::string_view) {
        ++commands;
        return control_answer(true, "");
    };
    answer_control(control_line("drain") + control_line("undrain"), count);
    CHECK(commands == 1);
    CHECK(answer_control("\n" + control_line("drain"), count).starts_with("{\"ok\":false"));
    CHECK(commands == 1);
}

}  // namespace noren::proxy
