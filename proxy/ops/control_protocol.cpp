#include "proxy/ops/control_protocol.hpp"

#include <array>
#include <exception>
#include <utility>

#include <boost/json.hpp>

#include "config/keys.hpp"
#include "proxy/ops/json_text.hpp"

namespace noren::proxy {
namespace {

namespace json = boost::json;

/// The words of a command; empty: not the line that was expected.
std::string words_of(std::string_view line) {
    boost::system::error_code error;
    const auto value = json::parse(json::string_view(line.data(), line.size()), error);
    if (error || !value.is_object()) return {};
    const auto* words = value.as_object().if_contains("command");
    return words && words->is_string() ? std::string(words->as_string()) : std::string();
}

/// The rule for the number is the one of the config key.
std::variant<ControlCommand, std::string> parse_limit(std::string_view number) {
    config::Config wanted;
    config::Refusals refusals;
    const config::Key& key = *config::find_key("admission", "max_concurrency");
    if (!key.read(config::Value::scalar(std::string(number)), wanted, refusals))
        return "limit: found " + refusals[0].found + ", expected " + refusals[0].expected;
    return ControlCommand{ControlCommand::Kind::limit, wanted.admission.max_concurrency};
}

}  // namespace

std::string control_line(std::string_view command) {
    return json::serialize(json::object{{"command", json_text(command)}}) + "\n";
}

std::string control_answer(bool ok, std::string_view message) {
    return json::serialize(json::object{{"ok", ok}, {"message", json_text(message)}});
}

std::string answer_control(std::string_view text,
                           const std::function<std::string(std::string_view words)>& handle) {
    const auto answer = [&] {
        const std::string words = words_of(text.substr(0, text.find('\n')));
        if (words.empty())
            return control_answer(false, "expected one line of JSON: {\"command\": \"status\"}");
        try {
            return handle(words);
        } catch (const std::exception& problem) {
            return control_answer(false, problem.what());
        }
    };
    return answer() + "\n";
}

std::variant<ControlCommand, std::string> parse_control_command(std::string_view words) {
    using Kind = ControlCommand::Kind;
    constexpr std::array<std::pair<std::string_view, Kind>, 5> k_plain = {{{"reload", Kind::reload},
                                                                           {"drain", Kind::drain},
                                                                           {"undrain", Kind::undrain},
                                                                           {"status", Kind::status},
                                                                           {"ready", Kind::ready}}};
    for (const auto& [name, kind] : k_plain)
        if (words == name) return ControlCommand{kind, 0};
    constexpr std::string_view k_limit = "limit ";
    if (words.starts_with(k_limit)) return parse_limit(words.substr(k_limit.size()));
    return "unknown command; there are reload, drain, undrain, status, ready, limit N";
}

}  // namespace noren::proxy
