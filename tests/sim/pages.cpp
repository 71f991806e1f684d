#include "tests/sim/pages.hpp"

#include <boost/json.hpp>

#include "tests/sim/json_text.hpp"

namespace sim {

namespace json = boost::json;

namespace {

std::string models(const Core& core) {
    return concat(R"({"object":"list","data":[{"id":)", quoted(core.options().model),
                  R"(,"object":"model","created":1767225600,"owned_by":"noren-sim","max_model_len":)",
                  core.options().gpu.kv_tokens, "}]}");
}

std::string state(const Core& core) {
    const Counters c = core.counters();
    return concat(R"({"requests":)", c.requests, R"(,"complete":)", c.complete, R"(,"cancelled":)",
                  c.cancelled, R"(,"faulted":)", c.faulted, R"(,"refused":)", c.refused, R"(,"aborted":)",
                  c.aborted, R"(,"active":)", c.active, R"(,"most_active":)", c.most_active,
                  R"(,"connections":)", c.connections, R"(,"accepted":)", c.accepted, "}");
}

std::string truths(const Core& core) {
    std::string lines;
    for (const Truth& truth : core.log().kept())
        lines += to_json_line(truth);
    return lines;
}

Page mistake(const std::string& why) {
    return {.status = 400, .body = concat(R"({"detail":)", quoted(why), "}")};
}

Page control(Core& core, std::string_view body) {
    boost::system::error_code error;
    const json::value document = json::parse(json::string_view(body.data(), body.size()), error);
    if (error || !document.is_object()) return mistake("expected a JSON object");
    const json::object& object = document.get_object();
    std::vector<Fault> script;
    if (const json::value* faults = object.if_contains("faults")) {
        if (!faults->is_array()) return mistake("faults: expected an array of strings");
        for (const json::value& item : faults->get_array()) {
            const std::string text =
                item.is_string() ? std::string(item.get_string()) : json::serialize(item);
            const auto fault = text.empty() ? Fault{} : parse_fault(text);
            if (!fault) return mistake(concat("faults: found ", text, ", expected ", fault_forms()));
            script.push_back(*fault);
        }
        core.set_script(std::move(script));
    }
    if (const json::value* time = object.if_contains("refuse_ms")) {
        if (!time->is_int64() || time->get_int64() < 0) return mistake("refuse_ms: expected a number >= 0");
        const json::value* drop = object.if_contains("drop");
        core.refuse_for(std::chrono::milliseconds(time->get_int64()),
                        drop != nullptr && drop->is_bool() && drop->get_bool());
    }
    return {.body = state(core)};
}

std::optional<Page> read_only_page(const Core& core, std::string_view path) {
    if (path == "/health" || path == "/ping") return Page{.type = ""};
    if (path == "/version") return Page{.body = R"({"version":"noren-sim"})"};
    if (path == "/v1/models") return Page{.body = models(core)};
    if (path == "/metrics")
        return Page{.type = "text/plain; version=0.0.4; charset=utf-8", .body = core.metrics_page()};
    if (path == "/sim/state") return Page{.body = state(core)};
    if (path == "/sim/truth") return Page{.type = "application/x-ndjson", .body = truths(core)};
    return std::nullopt;
}

}  // namespace

Page page_for(Core& core, std::string_view method, std::string_view path, std::string_view body) {
    const bool reading = method == "GET" || method == "HEAD";
    std::string_view allow;
    if (auto page = read_only_page(core, path)) {
        if (reading) return *std::move(page);
        allow = "GET, HEAD";
    } else if (path == "/sim/control" || route_of(path)) {
        if (method == "POST" && path == "/sim/control") return control(core, body);
        allow = "POST";
    } else {
        return {.status = 404, .body = R"({"detail":"Not Found"})"};
    }
    return {.status = 405, .body = R"({"detail":"Method Not Allowed"})", .allow = allow};
}

}  // namespace sim
