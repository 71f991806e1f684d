#include "tests/unit/metrics/rig.hpp"

namespace noren::metrics::test {

std::string tokens(int k) {
    std::string text;
    for (int i = 0; i < k; ++i)
        text += "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ramen\"}}]}\n\n";
    return text;
}

std::string role_event() {
    return "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
}

std::string finish_event(std::string_view reason) {
    return "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"" + std::string(reason) +
           "\"}]}\n\n";
}

std::string usage_event(int prompt, int completion, int cached, int reasoning) {
    return "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":" + std::to_string(prompt) +
           ",\"completion_tokens\":" + std::to_string(completion) +
           ",\"prompt_tokens_details\":{\"cached_tokens\":" + std::to_string(cached) +
           "},\"completion_tokens_details\":{\"reasoning_tokens\":" + std::to_string(reasoning) + "}}}\n\n";
}

Rig::Rig() : telemetry({{"m"}, 4, "0.1.0", "abc", "gcc"}) {
    telemetry.set_access_log([this](std::string_view line) { log.emplace_back(line); });
}

bool Rig::logged_error() const {
    return log.at(0).find("\"level\":\"error\"") != std::string::npos;
}

void Driven::until_sent(std::string_view model, std::int64_t choices) {
    meter.queued(at(10), true);
    meter.admitted(at(30));
    meter.connected(at(35), false);
    meter.asked(model, choices, true);
    meter.sent(at(36));
}

void Driven::read(double ms, std::string_view bytes) {
    meter.body(bytes);
    meter.mark(at(ms));
}

void Driven::end(double ms, Outcome outcome, int status, std::string_view reason) {
    meter.finish({outcome, status, reason}, {}, at(ms));
}

void Driven::whole(double ms) {
    meter.upstream_done(at(ms));
    end(ms);
}

}  // namespace noren::metrics::test
