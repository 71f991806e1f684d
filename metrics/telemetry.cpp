#include "metrics/telemetry.hpp"

#include <algorithm>
#include <utility>

#include "metrics/exposition.hpp"
#include "metrics/json_line.hpp"
#include "metrics/utf8.hpp"

namespace noren::metrics {
namespace {

// As much as is kept of a name.
constexpr std::size_t k_max_label = 256;

/// A control character or a line separator of Unicode: U+0000..1F, U+007F..9F, U+2028, U+2029.
bool breaks_lines(std::string_view character) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
    if (character.size() == 1) return byte(0) < ' ' || byte(0) == 0x7f;
    return (byte(0) == 0xc2 && byte(1) < 0xa0) || character == "\u2028" || character == "\u2029";
}

/// UTF-8 on one line, of bounded length: label values come from requests, and a scraper refuses the whole
/// page for one that is not UTF-8.
std::string label_of(std::string_view name) {
    const std::string valid = to_valid_utf8(name.substr(0, k_max_label));
    std::string label;
    for (std::string_view rest = valid; !rest.empty();) {
        const std::string_view character = rest.substr(0, utf8_step(rest).size);
        label.append(breaks_lines(character) ? "_" : character);
        rest.remove_prefix(character.size());
    }
    return label;
}

/// Three digits always, so that code=~"5.." works; 000 when nothing was sent.
std::string code_of(int status) {
    std::string digits = std::to_string(status);
    return digits.size() < 3 ? std::string(3 - digits.size(), '0') + digits : digits;
}

template <typename Family>
auto& of(Family& family, const std::string& model) {
    return family.Add({{"model", model}});
}
Histogram& of(HistogramFamily& family, const std::string& model, const Buckets& bounds) {
    return family.Add({{"model", model}}, bounds);
}

}  // namespace

ModelSeries::ModelSeries(ModelFamilies& f, std::string label)
    : duration{},
      ttft(of(f.ttft, label, buckets::ttft())),
      upstream_ttft(of(f.upstream_ttft, label, buckets::ttft())),
      itl(of(f.itl, label, buckets::itl())),
      tpot(of(f.tpot, label, buckets::itl())),
      tps(of(f.tps, label, buckets::tokens_per_second())),
      request_prompt_tokens(of(f.request_prompt_tokens, label, buckets::token_count())),
      request_output_tokens(of(f.request_output_tokens, label, buckets::token_count())),
      prompt_tokens(of(f.prompt_tokens, label)),
      prompt_cached_tokens(of(f.prompt_cached_tokens, label)),
      output_tokens_events(f.output_tokens.Add({{"model", label}, {"source", "events"}})),
      output_tokens_usage(f.output_tokens.Add({{"model", label}, {"source", "usage"}})),
      reasoning_tokens(of(f.reasoning_tokens, label)),
      finish_reasons{},
      families_(f),
      label_(std::move(label)) {
    for (std::size_t i = 0; i < duration.size(); ++i)
        duration[i] = &f.duration.Add({{"model", label_}, {"outcome", std::string(k_folded_names[i])}},
                                      buckets::duration());
    for (std::size_t i = 0; i < finish_reasons.size(); ++i)
        finish_reasons[i] =
            &f.finish_reasons.Add({{"model", label_}, {"finish_reason", std::string(k_finish_reasons[i])}});
}

prometheus::Counter& ModelSeries::requests(ApiEndpoint endpoint, int code, Outcome outcome) {
    const auto key = static_cast<std::uint32_t>(code) << 16 | static_cast<std::uint32_t>(endpoint) << 8 |
                     static_cast<std::uint32_t>(outcome);
    const std::lock_guard lock(mutex_);
    prometheus::Counter*& counter = requests_[key];
    if (!counter) {
        counter = &families_.requests.Add({{"model", label_},
                                           {"endpoint", std::string(name_of(endpoint))},
                                           {"code", code_of(code)},
                                           {"outcome", std::string(name_of(outcome))}});
    }
    return *counter;
}

void ModelSeries::show_requests() {
    for (std::size_t e = 0; e < k_endpoint_names.size(); ++e)
        requests(static_cast<ApiEndpoint>(e), 200, Outcome::ok);
}

Telemetry::Telemetry(const TelemetrySettings& settings)
    : families_(registry_), process_(registry_), unknown_(add_model("unknown")), other_(add_model("other")) {
    unknown_.show_requests();
    other_.show_requests();
    set_models(settings.models, settings.max_models);
    registry_.add<prometheus::Gauge>("noren_build_info", "What is running; always 1")
        .Add(
            {{"version", settings.version}, {"revision", settings.revision}, {"compiler", settings.compiler}})
        .Set(1);
}

std::string Telemetry::exposition() const {
    std::string text;
    const auto append = [&text](const prometheus::Collectable& source) {
        append_exposition(text, source.Collect());
    };
    for (const auto& family : registry_.families())
        append(*family);
    for (const auto& figure : sampled_)
        append(*figure);
    append(process_collector_);
    return text;
}

void Telemetry::sample(std::string name, std::string help, std::vector<LabelledReading> readings) {
    sampled_.push_back(std::make_unique<Sampled>(prometheus::MetricType::Gauge, std::move(name),
                                                 std::move(help), std::move(readings)));
}

void Telemetry::sample_counter(std::string name, std::string help, std::function<double()> read) {
    sample_counter(
        std::move(name), std::move(help),
        std::vector<LabelledReading>{{{}, [read = std::move(read)] { return std::optional(read()); }}});
}

void Telemetry::sample_counter(std::string name, std::string help, std::vector<LabelledReading> readings) {
    sampled_.push_back(std::make_unique<Sampled>(prometheus::MetricType::Counter, std::move(name),
                                                 std::move(help), std::move(readings)));
}

void Telemetry::log_access(std::string_view line) const {
    if (access_log_) access_log_(line);
}

void Telemetry::upstream_connect(bool ok, Duration took) {
    process_.upstream_connects.add(ok ? "ok" : "error");
    if (ok) process_.connect.Observe(seconds(took));
}

void Telemetry::config_loaded(std::chrono::system_clock::time_point at) {
    process_.reload_ok.Set(1);
    process_.reload_time.Set(std::chrono::duration<double>(at.time_since_epoch()).count());
}

void Telemetry::page_fetch(std::string_view result, std::size_t bytes) {
    process_.page_fetches.add(result);
    process_.received_bytes.add("upstream", static_cast<double>(bytes));
}

void Telemetry::connection_refused(std::string_view why) {
    process_.connections_refused.add(why);
}

void Telemetry::config_reload(bool ok, std::chrono::system_clock::time_point at) {
    process_.reloads.add(ok ? "ok" : "error");
    if (ok) {
        config_loaded(at);
    } else {
        process_.reload_ok.Set(0);
    }
}

void Telemetry::config_restart_required(bool required) {
    process_.restart_required.Set(required ? 1 : 0);
}

void Telemetry::refused_head(int status, Outcome outcome, std::string_view reason, std::size_t body_sent) {
    unknown_.requests(ApiEndpoint::passthrough, status, outcome).Increment();
    process_.failures.add(reason);
    process_.sent_bytes.add("client", static_cast<double>(body_sent));
    JsonLine line;
    line.add("time", rfc3339_now()).add("level", "warning").add("msg", "refused before there was a request");
    line.add("status", std::int64_t{status}).add("outcome", name_of(outcome)).add("reason", reason);
    log_access(std::move(line).finish());
}

void Telemetry::set_models(const std::vector<std::string>& always, std::size_t max_models) {
    const std::lock_guard lock(models_mutex_);
    max_models_ = std::max(max_models, always.size());
    for (const std::string& name : always) {
        std::string label = label_of(name);
        const auto known = models_.find(label);
        (known == models_.end() ? add_model(std::move(label)) : *known->second).show_requests();
    }
}

/// With the lock held, or before there is anybody else.
ModelSeries& Telemetry::add_model(std::string label) {
    auto series = std::make_unique<ModelSeries>(families_, label);
    return *models_.emplace(std::move(label), std::move(series)).first->second;
}

ModelSeries& Telemetry::model(std::string_view name, bool may_create) {
    if (name.empty()) return unknown_;
    std::string label = label_of(name);
    const std::lock_guard lock(models_mutex_);
    const auto known = models_.find(label);
    if (known != models_.end()) return *known->second;
    constexpr std::size_t k_always = 2;  // unknown and other
    const bool full = models_.size() >= max_models_ + k_always;
    if (full) process_.model_overflow.Increment();
    if (full || !may_create) return other_;
    return add_model(std::move(label));
}

}  // namespace noren::metrics
