#pragma once
// Is the engine there? One small GET every few seconds, outside of admission.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/address.hpp"
#include "config/config.hpp"
#include "proxy/net/loop.hpp"
#include "proxy/net/tls_context.hpp"
#include "proxy/upstream/engine_health.hpp"
#include "proxy/upstream/resolver.hpp"

namespace noren::proxy::upstream {

/// Runs on a worker's loop, with the sockets that exchanges use. "Up": any answer below 500 to the last
/// probe. An engine that is still loading its model refuses connections or answers 503, and is down at once;
/// one that is only slow to answer is down after the third time in a row, as a busy engine often serves its
/// health page from the loop that is busy, and taking it out of service would send its load to the next one.
/// When a dial finds nobody listening (EngineHealth::doubt), the next look is at once, but no sooner than
/// 250 ms after the last one began.
class HealthProbe {
  public:
    /// Called with the first finding and each change after it, on the loop's thread; why is empty when up.
    using OnChange = std::function<void(bool up, std::string_view why)>;

    using Tls = std::shared_ptr<const net::TlsContext>;  ///< null = plain

    /// health: outlives the probe, which alone writes whether the engine is up.
    HealthProbe(net::Loop& loop, Resolver& resolver, const config::Address& engine,
                const config::Upstream& settings, Tls tls, EngineHealth& health, OnChange on_change = {});
    /// While no loop runs whose exchanges may doubt the engine.
    ~HealthProbe();

    // --- any thread
    void start();
    /// Taken over by a probe at once, so that no old interval has to pass first.
    void set(const config::Upstream& settings, Tls tls);
    /// Why the last probe was not answered as it should; empty: it was.
    std::string last_error() const;

  private:
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace noren::proxy::upstream
