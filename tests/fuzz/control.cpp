// The control socket's two ends: whatever a client says gets one answer in one line and at most one command
// is carried out; whatever a noren answers, `noren ctl` shows it and ends with one of its statuses.

#include <sstream>
#include <string>
#include <variant>

#include <boost/json.hpp>

#include "metrics/utf8.hpp"
#include "proxy/cli/ctl_command.hpp"
#include "proxy/ops/control_protocol.hpp"
#include "tests/fuzz/input.hpp"

using namespace noren::proxy;

namespace {

std::string words_for(const ControlCommand& command) {
    using Kind = ControlCommand::Kind;
    switch (command.kind) {
        case Kind::reload:
            return "reload";
        case Kind::drain:
            return "drain";
        case Kind::undrain:
            return "undrain";
        case Kind::status:
            return "status";
        case Kind::ready:
            return "ready";
        case Kind::limit:
            break;
    }
    return "limit " + std::to_string(command.limit);
}

/// What noren would do, without a noren.
std::string carried_out(std::string_view words) {
    const auto parsed = parse_control_command(words);
    if (const auto* mistake = std::get_if<std::string>(&parsed)) {
        fuzz::expect(!mistake->empty(), "a mistake has words");
        return control_answer(false, *mistake);
    }
    const auto& command = std::get<ControlCommand>(parsed);
    const auto again = parse_control_command(words_for(command));
    fuzz::expect(again == parsed, "a command that is said again is the same");
    return control_answer(true, words_for(command));
}

void server_end(const std::string& text) {
    int commands = 0;
    const std::string answer = answer_control(text, [&](std::string_view words) {
        ++commands;
        return carried_out(words);
    });
    fuzz::expect(commands <= 1, "one line is one command");
    fuzz::expect(answer.find('\n') == answer.size() - 1, "the answer is one line");
    boost::system::error_code error;
    const auto reply = boost::json::parse(answer, error);
    fuzz::expect(!error && reply.is_object(), "the answer is JSON");
    fuzz::expect(reply.as_object().at("ok").is_bool() && reply.as_object().at("message").is_string(),
                 "it says whether and what");
    fuzz::expect(commands == 1 || !reply.as_object().at("ok").as_bool(), "nothing done is not ok");
}

void said_by_ctl(const std::string& words) {
    std::string heard;
    const std::string line = control_line(words);
    answer_control(line, [&](std::string_view command) { return heard = command; });
    fuzz::expect(line.find('\n') == line.size() - 1, "what ctl says is one line");
    fuzz::expect(heard == noren::metrics::to_valid_utf8(words), "noren hears what ctl was told");
}

void client_end(const std::string& line, bool as_json) {
    CtlOptions options;
    options.json = as_json;
    std::ostringstream out, err;
    const int status = show_control_answer(line, options, out, err);
    fuzz::expect(status == 0 || status == 1, "a status that is documented");
    fuzz::expect(status == 0 ? err.str().empty() : true, "what went well is no error");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    const std::string text(input.rest());
    switch (choice % 4) {
        case 0:
            server_end(text);
            break;
        case 1:
            said_by_ctl(text);
            break;
        default:
            client_end(text, choice % 4 == 2);
    }
    return 0;
}
