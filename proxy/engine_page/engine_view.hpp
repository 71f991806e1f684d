#pragma once
// What noren itself makes of the engine's metrics page: figures under noren's names, and the page behind
// noren's own.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "metrics/engine/figures.hpp"
#include "proxy/engine_page/page_board.hpp"
#include "proxy/engine_page/page_request.hpp"

namespace noren::metrics {
class Telemetry;
}

namespace noren::proxy::engine_page {

/// One thread (the ops thread). Looks when it is told to, that is when noren's own page is asked for: while
/// nobody reads the figures, the engine is left alone.
class EngineView {
  public:
    EngineView(PageBoard& board, config::Address engine) : board_(board), engine_(std::move(engine)) {}

    /// Begins a look, if the config wants one. Ask the result until it is true: then there is nothing more to
    /// wait for. Empty: there is nothing to wait for at all.
    std::function<bool()> look(const config::EngineMetrics& wanted,
                               const std::shared_ptr<const net::TlsContext>& tls, TimePoint now);

    /// Takes in what has come, and lets go of what is too old.
    void update(TimePoint now);

    /// As of the last update; nothing while engine_metrics.figures is off.
    const metrics::engine::Figures& figures() const { return figures_; }
    /// Seconds since the page was asked for that the figures were last read from; also when they are too old.
    std::optional<double> age(TimePoint now) const;
    /// Whether there are figures; empty while they are not wanted.
    std::optional<bool> is_up() const;

    /// Appends the engine's page to noren's own, while engine_metrics.merge is on and there is one.
    void append_page(std::string& own, std::optional<double> queue) const;

    /// Registers the gauges and counters that tell all this. Once, before the first scrape.
    void sample_into(metrics::Telemetry& telemetry);

  private:
    void take_in(const std::shared_ptr<PageFetch>& fetch);

    PageBoard& board_;
    const config::Address engine_;
    config::EngineMetrics wanted_;
    std::shared_ptr<PageFetch> running_;
    std::shared_ptr<const Page> page_;  ///< null: none, or too old
    TimePoint asked_{};                 ///< for page_, or for the last one there was
    bool ever_ = false;
    metrics::engine::Figures read_;     ///< from page_
    metrics::engine::Figures figures_;  ///< read_, while they are wanted
};

}  // namespace noren::proxy::engine_page
