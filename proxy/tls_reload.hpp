#pragma once
// The TLS contexts in force, and their renewal: when the files change (a secret volume's `..data` swap, a
// rename, an edit in place), when the config does, or when told to. All or nothing: as long as one of the
// files is bad the contexts before stay in force, and the log, a metric and the status say so.

#include <chrono>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/config.hpp"
#include "metrics/telemetry.hpp"
#include "proxy/log/log.hpp"
#include "proxy/ops/status.hpp"
#include "proxy/tls_files.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

/// One thread (the ops thread). Looks at the files from time to time, which needs no inotify instance for
/// each and sees every kind of volume. New content is believed once it has been the same at two looks, so
/// that a pair caught between the writing of its two files is not taken for a bad one.
class TlsReload {
  public:
    using OnChange = std::function<void()>;

    /// Throws std::runtime_error, naming every mistake, if the files are bad. on_change: contexts() is new.
    TlsReload(asio::io_context& io, const config::Config& config, metrics::Telemetry& telemetry, Log& log,
              OnChange on_change, std::chrono::milliseconds interval = std::chrono::seconds(1));

    void start();
    /// A reloaded configuration, and whatever the files hold now, at once. Does not call on_change.
    void set(const config::Config& config);

    const TlsContexts& contexts() const { return contexts_; }
    /// Fills in the TLS part.
    void describe(Status& status) const;

  private:
    void look();
    void look_later();
    bool take(const TlsFiles& files);
    void tell(const TlsContexts& contexts);

    config::Config config_;
    metrics::Telemetry& telemetry_;
    Log& log_;
    const OnChange on_change_;
    const std::chrono::milliseconds interval_;
    asio::steady_timer timer_;
    TlsContexts contexts_;
    std::string in_force_, seen_, refused_;  ///< fingerprints
    std::string problem_;                    ///< why what is in the files is not in force
};

}  // namespace noren::proxy
