// What `noren ctl` can have done.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <boost/json.hpp>

#include "proxy/app.hpp"
#include "proxy/ops/control_protocol.hpp"
#include "proxy/ops/json_text.hpp"

namespace noren::proxy {
namespace {

namespace json = boost::json;

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

}  // namespace

std::string App::override_limit(std::uint32_t limit) {
    config::Config wanted = settings_->config;
    wanted.admission.max_concurrency = limit;
    set_limits(wanted);
    limit_overridden_ = true;
    const std::string now = std::to_string(limit);
    const std::string configured = std::to_string(settings_->config.admission.max_concurrency);
    log_.event(Level::info, "the limit is overridden until the next reload",
               {{"limit", now}, {"configured", configured}});
    return control_answer(true,
                          "the limit is " + now + " until the next reload (configured: " + configured + ")");
}

std::string App::reload_for_control() {
    const ReloadResult result = reload_.now();
    return json::serialize(json::object{{"ok", result.ok},
                                        {"message", result.message},
                                        {"errors", json_texts(result.errors)},
                                        {"changes", json_texts(result.changes)},
                                        {"restart_required", json_texts(result.restart_required)}});
}

/// words: those behind `noren ctl`.
std::string App::control(std::string_view words) {
    using Kind = ControlCommand::Kind;
    const auto parsed = parse_control_command(words);
    if (const auto* mistake = std::get_if<std::string>(&parsed)) return control_answer(false, *mistake);
    const ControlCommand command = std::get<ControlCommand>(parsed);
    switch (command.kind) {
        case Kind::reload:
            return reload_for_control();
        case Kind::drain:
            drain_.begin(settings_->config.drain, settings_->config.drain.lame_duck);
            return control_answer(true, "draining");
        case Kind::undrain:
            if (terminating_) return control_answer(false, "this noren is ending and cannot be called back");
            drain_.call_off();
            return control_answer(true, "serving");
        case Kind::limit:
            return override_limit(command.limit);
        case Kind::ready: {
            const auto because = not_ready_because();
            return control_answer(because.empty(),
                                  because.empty() ? "ready" : "not ready: " + joined(because));
        }
        case Kind::status:
            break;
    }
    return json::serialize(json::object{{"ok", true}, {"status", json::parse(to_json(status()))}});
}

}  // namespace noren::proxy
