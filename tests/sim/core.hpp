#pragma once
// What the connections of one engine share.

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <string>

#include <boost/asio/io_context.hpp>

#include "tests/sim/engine.hpp"
#include "tests/sim/engine_metrics.hpp"
#include "tests/sim/feed.hpp"
#include "tests/sim/options.hpp"
#include "tests/sim/truth.hpp"

namespace sim {

/// Engine thread only, except counters() and log().
class Core {
  public:
    Core(net::io_context& io, Options options);

    const Options& options() const { return options_; }

    /// Puts a request into the engine: into the batch, or as a lone stream if the options or the request's
    /// headers (ttft, interval) say so. fits() must be true; a lone stream always fits.
    std::unique_ptr<TokenFeed> feed(const Ask& ask, const Overrides& overrides, Sleeper& sleeper);
    bool fits(const Ask& ask, const Overrides& overrides) const;
    TruthLog& log() { return log_; }
    const TruthLog& log() const { return log_; }

    /// A request head has come. The id is the client's, or one of ours.
    Truth begin(std::string_view id, std::string_view api);
    /// It counts as active. If that makes more than ever before, it is first looked which of the others'
    /// clients have left: a close reaches a coroutine of ours some steps after it reached the kernel, and
    /// what came later not more.
    void active();
    /// It does not any more. Called before the client can know that it is over: what the client does next may
    /// reach us before our own coroutine has come to finish().
    void over() { --counts_.active; }
    /// It has left the engine: counted, measured, logged.
    void finish(Truth truth);

    /// The next fault of the script, else the one of the options.
    Fault next_fault();
    void set_script(std::vector<Fault> script) { script_.assign(script.begin(), script.end()); }

    std::string metrics_page() const;
    Counters counters() const;

    /// An open connection: how to end it, and how to call its request over if its client has left.
    struct Peer {
        std::function<void()> abort;
        std::function<void()> look;
    };
    std::list<Peer>::iterator connected(Peer peer);
    void disconnected(std::list<Peer>::iterator peer);
    void abort_connections();

    /// Set by the listener: see Engine::refuse_for.
    std::function<void(std::chrono::milliseconds, bool)> refuse_for;

    bool stopping() const { return stopping_; }
    void stop();

  private:
    bool lone(const Overrides& overrides) const;

    Options options_;
    BatchDriver batch_;
    TruthLog log_;
    EngineMetrics metrics_;
    std::deque<Fault> script_;
    std::list<Peer> peers_;
    std::uint64_t next_id_ = 0;
    std::size_t lone_running_ = 0;
    bool stopping_ = false;

    struct {
        std::atomic<std::uint64_t> requests, complete, cancelled, faulted, refused, aborted, active,
            most_active, connections, accepted;
    } counts_{};
};

}  // namespace sim
