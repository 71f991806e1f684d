#pragma once
// What noren says about itself to people and programs: /-/status and `noren ctl status`.

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/memory_bound.hpp"

namespace noren::proxy {

struct Status {
    std::string version, revision;
    double uptime_seconds = 0;
    bool ready = false;
    std::vector<std::string> not_ready_because;  ///< "draining", "engine_down"
    std::string drain;                           ///< "no", "lame_duck", "refusing", "drained"
    std::string listen, ops, engine;
    bool engine_up = false;
    std::string engine_error;             ///< of the last health probe; empty: it was answered
    std::string engine_tls;               ///< "none", "verified", "unverified"
    bool tls = false;                     ///< towards the clients
    std::string tls_certificate_expires;  ///< RFC 3339; empty: no certificate
    std::string tls_problem;              ///< why changed files are not in force; empty: they are
    std::uint64_t most_connections = 0;   ///< that can be open
    MemoryBound memory;
    std::vector<std::uint64_t> connections_by_worker;
    std::uint64_t workers = 0, connections = 0, upstream_active = 0, upstream_idle = 0;
    std::uint64_t concurrency_limit = 0, queue_capacity = 0;  ///< limit 0 = unlimited
    std::uint64_t configured_limit = 0;  ///< differs from concurrency_limit while that is overridden
    bool limit_overridden = false;       ///< by `noren ctl limit`
    std::uint64_t running = 0, waiting = 0, inflight = 0, awaiting_first_token = 0;
    std::string config_file;            ///< empty: none
    std::vector<std::string> stronger;  ///< than the file: "admission.max_queue by --max-queue"
    bool last_reload_ok = true;
    std::string last_reload_at;  ///< RFC 3339
    std::vector<std::string> last_reload_errors;
    std::vector<std::string> restart_required;  ///< keys that differ from what runs
};

/// One line.
std::string to_json(const Status& status);

}  // namespace noren::proxy
