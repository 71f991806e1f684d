#include "proxy/engine_page/engine_view.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "metrics/engine/merged_page.hpp"
#include "metrics/telemetry.hpp"

namespace noren::proxy::engine_page {

using metrics::Clock;
using metrics::engine::Figure;

namespace {

/// Text that a Prometheus would read as format 0.0.4. Some engines give no type, trtllm-serve gives JSON at
/// /metrics, and OpenMetrics is another format.
bool is_readable(const Page& page) {
    const std::string_view type = page.head.fields.value("content-type");
    const std::string_view media = type.substr(0, type.find(';'));
    return page.head.status == 200 && !page.head.fields.has("content-encoding") &&
           (media.empty() || http::same_name(media.substr(0, media.find_last_not_of(' ') + 1), "text/plain"));
}

PageTerms terms_of(const config::EngineMetrics& wanted, const std::shared_ptr<const net::TlsContext>& tls) {
    return {wanted.window, wanted.timeout, wanted.max_size, wanted.url.empty() ? tls : nullptr};
}

}  // namespace

std::function<bool()> EngineView::look(const config::EngineMetrics& wanted,
                                       const std::shared_ptr<const net::TlsContext>& tls, TimePoint now) {
    wanted_ = wanted;
    if (wanted_.figures == "off" && wanted_.merge == "off") return {};
    const auto share = board_.ask(own_request(engine_, wanted_.path), terms_of(wanted_, tls), now);
    update(
        now);  // after asking: a look that another one takes the place of has ended by now, if it ever does
    if (!share.fetch) return {};
    running_ = share.fetch;
    return [fetch = share.fetch] { return fetch->outcome().has_value(); };
}

void EngineView::update(TimePoint now) {
    if (running_ && running_->outcome()) take_in(std::exchange(running_, nullptr));
    if (page_ && now > asked_ + wanted_.max_age) page_.reset();
    figures_ = page_ && wanted_.figures == "on" ? read_ : metrics::engine::Figures{};
    if (wanted_.figures == "off" && wanted_.merge == "off") page_.reset();
}

/// A look that has failed leaves what is known, as long as that is not too old.
void EngineView::take_in(const std::shared_ptr<PageFetch>& fetch) {
    const auto outcome = fetch->outcome();
    if (!outcome->page || !is_readable(*outcome->page)) return;
    asked_ = fetch->began;
    ever_ = true;
    if (page_ == outcome->page) return;
    page_ = outcome->page;
    read_ = metrics::engine::read_figures(page_->body);
}

std::optional<double> EngineView::age(TimePoint now) const {
    if (!ever_ || (wanted_.figures == "off" && wanted_.merge == "off")) return std::nullopt;
    return std::chrono::duration<double>(now - asked_).count();
}

std::optional<bool> EngineView::is_up() const {
    if (wanted_.figures == "off") return std::nullopt;
    return !figures_.engine.empty();
}

void EngineView::append_page(std::string& own, std::optional<double> queue) const {
    if (!page_ || wanted_.merge == "off") return;
    metrics::engine::append_page(own, page_->body, wanted_.add_queue == "on" ? queue : std::nullopt);
}

void EngineView::sample_into(metrics::Telemetry& telemetry) {
    using metrics::LabelledReading;
    const auto of_each_engine = [this](Figure figure) {
        std::vector<LabelledReading> readings;
        for (const std::string_view engine : metrics::engine::k_engine_names)
            readings.push_back({{{"engine", std::string(engine)}}, [this, engine, figure] {
                                    return figures_.engine == engine ? figures_[figure] : std::nullopt;
                                }});
        return readings;
    };
    telemetry.sample("noren_engine_queued_requests",
                     "Requests that wait inside the engine, as it says itself; absent if it does not, or not "
                     "lately",
                     of_each_engine(Figure::queued));
    telemetry.sample("noren_engine_running_requests", "Requests in the engine's batch, as it says itself",
                     of_each_engine(Figure::running));
    telemetry.sample(
        "noren_engine_kv_cache_usage_ratio",
        "Share of the engine's KV cache that is in use, as it says itself; the mean of its replicas",
        of_each_engine(Figure::kv_cache_usage));
    telemetry.sample_counter("noren_engine_prefix_cache_queries_total",
                             "What the engine has looked up in its prefix cache, in tokens (vLLM, SGLang) or "
                             "blocks (TensorRT-LLM)",
                             of_each_engine(Figure::prefix_cache_queries));
    telemetry.sample_counter("noren_engine_prefix_cache_hits_total",
                             "What of it the engine has found there, in the same unit",
                             of_each_engine(Figure::prefix_cache_hits));
    telemetry.sample("noren_engine_metrics_up",
                     "1 if the engine's metrics page was read lately and is of an engine that noren knows; "
                     "absent while engine_metrics.figures is off",
                     {{{}, [this]() -> std::optional<double> {
                           const auto up = is_up();
                           return up ? std::optional<double>(*up ? 1 : 0) : std::nullopt;
                       }}});
    telemetry.sample("noren_engine_metrics_age_seconds",
                     "Since the engine was asked for the page that was read last; absent before the first",
                     {{{}, [this] { return age(Clock::now()); }}});
}

}  // namespace noren::proxy::engine_page
