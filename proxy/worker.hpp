#pragma once
// One thread: an event loop, its listener, its upstream connections, its client connections. Workers share
// the admission gate and the telemetry, nothing else.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "config/address.hpp"
#include "proxy/admission/connection_quota.hpp"
#include "proxy/http/date.hpp"
#include "proxy/net/acceptor.hpp"
#include "proxy/net/loop.hpp"
#include "proxy/settings.hpp"
#include "proxy/upstream/engine_health.hpp"
#include "proxy/upstream/pool.hpp"
#include "proxy/upstream/resolver.hpp"

namespace noren::metrics {
class Telemetry;
}

namespace noren::proxy {

namespace engine_page {
class PageBoard;
}

namespace admission {
class ConnectionQuota;
class Gate;
class RetryAfter;
}  // namespace admission

/// What all workers share; outlives them.
struct Services {
    net::ReserveDescriptor& reserve;
    admission::ConnectionQuota& quota;
    admission::Gate& gate;
    admission::RetryAfter& retry_after;
    metrics::Telemetry& telemetry;
    upstream::Resolver& resolver;
    config::Address engine;
    upstream::EngineHealth& engine_health;
    engine_page::PageBoard& pages;
};

/// How far a worker has been told to stop.
enum class Stop : unsigned char {
    no,
    closing,  ///< about to drain: connections close after their exchange, so that clients go elsewhere
    refuse,   ///< draining: besides, generations are refused and idle connections closed
    now,      ///< running exchanges are broken off
};

class Connection;

/// run() belongs to the worker's thread, as does everything else but for the functions that say otherwise.
class Worker {
  public:
    Worker(Services& services, std::shared_ptr<const Settings> settings);
    ~Worker();

    /// Serves until stop(now) and the last connection is gone. team: all workers, itself among them, which
    /// share the connections that come in as evenly as may be; outlives the call.
    void run(net::Descriptor listener, std::span<const std::unique_ptr<Worker>> team);

    // --- any thread
    void apply(std::shared_ptr<const Settings> settings);
    void stop(Stop how);
    /// A drain was called off: serve as before.
    void resume() { stop(Stop::no); }
    std::uint64_t connections() const { return connection_count_.load(std::memory_order_relaxed); }
    /// Its connections, and those that another worker has taken in for it.
    std::uint64_t load() const { return connections() + on_the_way_.load(std::memory_order_relaxed); }
    const upstream::Pool& pool() const { return pool_; }

    // --- for connections and exchanges
    net::Loop& loop() { return loop_; }
    Services& services() { return services_; }
    std::shared_ptr<const Settings> settings() const { return settings_; }
    upstream::Pool& pool() { return pool_; }
    Stop stopping() const { return stopping_; }
    std::mt19937_64& random() { return random_; }
    /// Now, as the Date field has it; good until the next call.
    std::string_view date() { return date_.at(std::chrono::system_clock::now()); }
    /// Where every read goes: what is in it is used up before anything else can run.
    std::span<char> scratch() { return scratch_; }

    /// Where small pieces are put together before they are written; likewise.
    std::string& together() { return together_; }

    /// There is a descriptor for another connection to the engine, or for keeping one of those that there
    /// are.
    bool fits_one_more_to_engine() const;
    /// For somebody who takes a descriptor: idle connections to the engine are closed if they have the last
    /// ones.
    void make_room();

    void joined(Connection& connection);
    void left(Connection& connection);

  private:
    /// A connection that was taken in and has its place.
    struct Newcomer {
        net::Descriptor client;
        admission::ConnectionQuota::Place place;
    };
    void accepted(net::Descriptor client);
    Worker& least_loaded();
    void serve(Newcomer newcomer);
    void take_over(Newcomer newcomer);  ///< any thread
    void stop_here(Stop how);
    void end_if_done();

    Services& services_;
    net::Loop loop_;
    std::shared_ptr<const Settings> settings_;
    std::optional<net::Acceptor> acceptor_;
    upstream::Pool pool_;
    std::set<Connection*> connections_;
    std::atomic<std::uint64_t> connection_count_{0};
    std::atomic<std::uint64_t> on_the_way_{0};
    std::span<const std::unique_ptr<Worker>> team_;
    Stop stopping_ = Stop::no;
    std::mt19937_64 random_;
    http::DateClock date_;
    std::array<char, 64 * 1024> scratch_;
    std::string together_;
};

}  // namespace noren::proxy
