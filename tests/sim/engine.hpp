#pragma once
// The simulated inference engine, for use inside a test: real sockets, real time, faults on demand, and the
// truth about everything it did.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/options.hpp"
#include "tests/sim/truth.hpp"

namespace sim {

/// Totals since the start, except where said otherwise. "Requests" are those with a truth of their own:
/// generating APIs, embeddings, rerank and /raw/*.
struct Counters {
    std::uint64_t requests = 0;  ///< heads received
    std::uint64_t complete = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t faulted = 0;
    std::uint64_t refused = 0;
    std::uint64_t aborted = 0;
    std::uint64_t active = 0;       ///< now: head received, client still there, last byte not yet on its way
    std::uint64_t most_active = 0;  ///< the highest `active` ever
    std::uint64_t connections = 0;  ///< now open
    std::uint64_t accepted = 0;     ///< connections
};

/// One engine on one thread of its own. The destructor stops it.
class Engine {
  public:
    explicit Engine(Options options);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Binds, listens and starts the thread. Throws std::system_error if the address cannot be had.
    void start();

    /// Ends every connection and request at once, as an engine that is killed; returns when all is over.
    /// The truths of unfinished requests say "aborted".
    void stop();

    std::uint16_t port() const;
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

    // The rest may be called from any thread while the engine runs.

    Counters counters() const;
    std::vector<Truth> truth() const;  ///< needs Options::keep_truth; in order of ending
    bool wait_for_truths(std::uint64_t count, std::chrono::milliseconds patience) const;

    /// Faults for the next requests with a truth, one each, in order; a request's own header wins (and uses
    /// up its entry). Replaces what was left of an earlier script.
    void set_script(std::vector<Fault> script);

    /// The listener is closed for that long, then comes back on the same port. With `drop`, open connections
    /// are reset too: the engine is down.
    void refuse_for(std::chrono::milliseconds time, bool drop = false);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace sim
