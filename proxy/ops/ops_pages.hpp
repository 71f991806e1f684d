#pragma once
// What the ops endpoint says, without a socket: a request in, a page out.

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace noren::proxy {

/// What the endpoint answers with; called on the ops thread.
struct OpsHooks {
    std::function<std::string()> metrics;  ///< Prometheus text 0.0.4
    std::function<std::string()> status_json;
    std::function<std::string()> config_yaml;  ///< effective, secrets masked
    std::function<bool()> ready;
    std::function<std::string()> ready_json;  ///< {"ready":..., "because":[...]}
    std::function<bool()> drained;            ///< nothing runs any more, or no drain was asked for
    std::function<bool()> draining;           ///< a drain was asked for; still true when it is over
    std::function<std::string()> complaint;   ///< what no longer works and only a restart can mend, or empty
    /// Before `metrics`, where that takes a look at the engine: says true once it has been taken. Empty, or
    /// an empty result: there is nothing to wait for.
    std::function<std::function<bool()>()> look_at_engine = {};
};

struct OpsPage {
    unsigned status = 200;
    std::string_view type;
    std::string body;
};

/// A line of text for people.
OpsPage text_page(unsigned status, std::string_view line);

/// The page at an origin-form target (path and query). /-/drain-wait says here how things stand; waiting for
/// its end is the server's. A hook that throws makes a 500.
OpsPage page_at(const OpsHooks& hooks, std::string_view target);

/// Whether the page at the target is the one that OpsHooks::metrics makes.
bool is_metrics_page(std::string_view target);

/// How to serve a /-/drain-wait.
struct DrainWait {
    /// How long to wait for a drain to begin. In a pod that ends, the engine's preStop hook (this request)
    /// and noren's own (`noren ctl drain`) run at the same time: without this patience the engine's could
    /// find no drain yet and let the engine go while streams run.
    std::chrono::seconds begin_within{0};
    std::optional<OpsPage> mistake;  ///< the query makes no sense
};

/// Empty: target is another page. Takes `?begin_within=SECONDS`, 0..60, default 0: without a drain the answer
/// comes at once.
std::optional<DrainWait> drain_wait_of(std::string_view target);

}  // namespace noren::proxy
