#include "proxy/ops/status.hpp"

#include <boost/json.hpp>

#include "proxy/ops/json_text.hpp"

namespace noren::proxy {

namespace json = boost::json;

std::string to_json(const Status& s) {
    const json::object root{
        {"version", json_text(s.version)},
        {"revision", json_text(s.revision)},
        {"uptime_seconds", s.uptime_seconds},
        {"ready", s.ready},
        {"not_ready_because", json_texts(s.not_ready_because)},
        {"drain", json_text(s.drain)},
        {"listen", json_text(s.listen)},
        {"tls", json::object{{"on", s.tls},
                             {"certificate_expires", json_text(s.tls_certificate_expires)},
                             {"problem", json_text(s.tls_problem)}}},
        {"ops", json_text(s.ops)},
        {"workers", s.workers},
        {"connections", s.connections},
        {"connections_by_worker",
         json::array(s.connections_by_worker.begin(), s.connections_by_worker.end())},
        {"max_connections", s.most_connections},
        {"memory_bound", json::object{{"process_bytes", s.memory.process},
                                      {"connection_bytes", s.memory.connection},
                                      {"waiting_request_bytes", s.memory.waiting_request},
                                      {"running_request_bytes", s.memory.running_request},
                                      {"worst_case_bytes", s.memory.worst_case}}},
        {"engine", json::object{{"address", json_text(s.engine)},
                                {"up", s.engine_up},
                                {"tls", s.engine_tls},
                                {"last_error", json_text(s.engine_error)},
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
        {"config", json::object{{"file", json_text(s.config_file)},
                                {"stronger", json_texts(s.stronger)},
                                {"last_reload_ok", s.last_reload_ok},
                                {"last_reload_at", json_text(s.last_reload_at)},
                                {"last_reload_errors", json_texts(s.last_reload_errors)},
                                {"restart_required", json_texts(s.restart_required)}}},
    };
    return json::serialize(root);
}

}  // namespace noren::proxy
