#include "proxy/ops/status.hpp"

#include <boost/json.hpp>

namespace noren::proxy {
namespace {

namespace json = boost::json;

json::array strings(const std::vector<std::string>& all) {
    json::array array;
    for (const std::string& one : all)
        array.emplace_back(one);
    return array;
}

}  // namespace

std::string to_json(const Status& s) {
    const json::object root{
        {"version", s.version},
        {"revision", s.revision},
        {"uptime_seconds", s.uptime_seconds},
        {"ready", s.ready},
        {"not_ready_because", strings(s.not_ready_because)},
        {"drain", s.drain},
        {"listen", s.listen},
        {"ops", s.ops},
        {"workers", s.workers},
        {"connections", s.connections},
        {"engine", json::object{{"address", s.engine},
                                {"up", s.engine_up},
                                {"last_error", s.engine_error},
                                {"connections_active", s.upstream_active},
                                {"connections_idle", s.upstream_idle}}},
        {"admission", json::object{{"concurrency_limit", s.concurrency_limit},
                                   {"configured_limit", s.configured_limit},
                                   {"limit_overridden", s.limit_overridden},
                                   {"queue_capacity", s.queue_capacity},
                                   {"running", s.running},
                                   {"waiting", s.waiting}}},
        {"inflight", s.inflight},
        {"awaiting_first_token", s.awaiting_first_token},
        {"config", json::object{{"file", s.config_file},
                                {"last_reload_ok", s.last_reload_ok},
                                {"last_reload_at", s.last_reload_at},
                                {"last_reload_errors", strings(s.last_reload_errors)},
                                {"restart_required", strings(s.restart_required)}}},
    };
    return json::serialize(root);
}

}  // namespace noren::proxy
