#pragma once
// Taking over a changed configuration while running: when the file changes, on SIGHUP, or when told to. All
// or nothing: with any mistake in it the old one goes on, and the log, a metric and the status say so.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "config/diff.hpp"
#include "config/load.hpp"
#include "config/reload_schedule.hpp"
#include "config/watch.hpp"
#include "metrics/telemetry.hpp"
#include "proxy/log/log.hpp"
#include "proxy/ops/status.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

struct ReloadResult {
    bool ok = false;
    std::string message;
    std::vector<std::string> errors;            ///< one mistake each
    std::vector<std::string> changes;           ///< "admission.max_queue: 512 -> 64"
    std::vector<std::string> restart_required;  ///< keys of the file that only a restart brings
};

/// One thread (the ops thread).
class Reload {
  public:
    using Apply = std::function<void(const config::Config&)>;

    /// loaded: what is in force now, from sources.
    Reload(asio::io_context& io, const config::Resolved& loaded, config::Sources sources,
           metrics::Telemetry& telemetry, Log& log, Apply apply);

    /// Begins to watch the file, if there is one.
    void start();

    /// Reads everything again, changed or not.
    ReloadResult now();

    /// For Apply and this class: what else there is to say about the reload that is going on, beside the keys
    /// that changed. Goes into the log at once, and into its message.
    void note(Level level, const std::string& text);

    /// Fills in the config part.
    void describe(Status& status) const;

  private:
    /// A file, and the events that say when to look at it.
    struct Watched {
        Watched(const std::string& path, std::string_view loaded, config::FileWatcher::Events events_from,
                config::FileWatcher::Read read)
            : file(path, loaded, events_from, std::move(read)) {}
        config::FileWatcher file;
        std::optional<asio::posix::stream_descriptor> events;
    };

    std::shared_ptr<Watched> watch(const std::string& path, std::string_view loaded,
                                   config::FileWatcher::Read read = {});
    bool only_polls() const;
    void watch_limit_file(std::string_view loaded);
    void watch_events(const std::shared_ptr<Watched>& watched);
    void warn_of(const config::LimitFile& file);
    void watch_clock();
    bool is_newly_gone();
    void look();
    ReloadResult take(config::Resolved resolved);
    void report(const ReloadResult& result);

    config::Config running_;
    std::string file_text_;  ///< as loaded at the start, like the next
    config::LimitFile limit_loaded_;
    const config::Sources sources_;
    metrics::Telemetry& telemetry_;
    Log& log_;
    Apply apply_;
    std::shared_ptr<Watched> config_file_;  ///< null: there is none
    std::shared_ptr<Watched> limit_file_;   ///< of admission.max_concurrency_file
    asio::io_context& io_;
    config::ReloadSchedule schedule_;
    asio::steady_timer timer_;
    std::optional<std::chrono::steady_clock::time_point> gone_since_;  ///< the config file
    bool gone_told_ = false;
    std::vector<std::string> stronger_;   ///< than the file: "admission.max_queue by --max-queue"
    std::vector<std::string> overruled_;  ///< one sentence for each key that the file sets in vain
    std::string notes_;                   ///< of the reload that is going on
    ReloadResult last_;
    std::string last_at_;
};

}  // namespace noren::proxy
