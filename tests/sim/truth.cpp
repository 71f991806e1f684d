#include "tests/sim/truth.hpp"

#include <cerrno>
#include <system_error>

#include "tests/sim/json_text.hpp"

namespace sim {

namespace {

std::int64_t ns(TimePoint when) {
    return Duration(when.time_since_epoch()).count();
}

std::string ns_or_null(const std::optional<TimePoint>& when) {
    return when ? std::to_string(ns(*when)) : "null";
}

std::string events_of(const Truth& truth) {
    std::string text = "[";
    text.reserve(truth.events.size() * 24 + 2);
    for (const Truth::Sent& sent : truth.events) {
        if (text.size() > 1) text += ',';
        text += concat("[", ns(sent.at), ",", sent.tokens, "]");
    }
    return text + "]";
}

std::string usage_of(const Truth& truth) {
    if (!truth.usage) return "null";
    return concat(R"({"prompt_tokens":)", truth.usage->prompt_tokens, R"(,"completion_tokens":)",
                  truth.usage->completion_tokens, "}");
}

}  // namespace

std::string to_json_line(const Truth& truth) {
    return concat(R"({"id":)", quoted(truth.id), R"(,"api":)", quoted(truth.api), R"(,"model":)",
                  quoted(truth.model), R"(,"stream":)", truth.stream ? "true" : "false", R"(,"fault":)",
                  quoted(truth.fault), R"(,"outcome":)", quoted(truth.outcome), R"(,"status":)", truth.status,
                  R"(,"arrival_ns":)", ns(truth.arrival), R"(,"body_read_ns":)", ns_or_null(truth.body_read),
                  R"(,"admitted_ns":)", ns_or_null(truth.admitted), R"(,"head_sent_ns":)",
                  ns_or_null(truth.head_sent), R"(,"cancel_seen_ns":)", ns_or_null(truth.cancel_seen),
                  R"(,"end_ns":)", ns(truth.end), R"(,"prompt_tokens":)", truth.prompt_tokens,
                  R"(,"output_tokens":)", truth.output_tokens, R"(,"token_events":)", truth.token_events,
                  R"(,"usage":)", usage_of(truth), R"(,"request_bytes":)", truth.request_bytes,
                  R"(,"request_fnv":")", hex(truth.request_fnv), R"(","answer_bytes":)", truth.answer_bytes,
                  R"(,"answer_fnv":")", hex(truth.answer_fnv), R"(","events":)", events_of(truth), "}\n");
}

TruthLog::TruthLog(const std::string& file, bool keep) : keep_(keep) {
    if (file.empty()) return;
    file_.reset(std::fopen(file.c_str(), "ae"));
    if (!file_) throw std::system_error(errno, std::generic_category(), "cannot open " + file);
}

void TruthLog::add(const Truth& truth) {
    if (file_) {
        const std::string line = to_json_line(truth);
        std::fwrite(line.data(), 1, line.size(), file_.get());
        std::fflush(file_.get());  // SIGTERM ends the program at once; nothing may be left in the buffer
    }
    {
        const std::lock_guard lock(mutex_);
        ++count_;
        if (keep_) kept_.push_back(truth);
    }
    added_.notify_all();
}

std::vector<Truth> TruthLog::kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
}

bool TruthLog::wait_for(std::uint64_t count, std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    return added_.wait_for(lock, patience, [&] { return count_ >= count; });
}

}  // namespace sim
