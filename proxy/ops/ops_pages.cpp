#include "proxy/ops/ops_pages.hpp"

#include <charconv>
#include <exception>
#include <utility>

namespace noren::proxy {
namespace {

constexpr std::string_view k_text = "text/plain; charset=utf-8";
constexpr std::string_view k_json = "application/json";
constexpr std::string_view k_metrics = "/metrics";
constexpr std::string_view k_drain_wait = "/-/drain-wait";
constexpr unsigned k_longest_begin = 60;

// For a browser (links) and for curl (columns) alike.
constexpr std::string_view k_index =
    "<!doctype html><meta charset=\"utf-8\"><title>noren</title><h1>noren: ops endpoint</h1>\n<pre>\n"
    "<a href=\"/metrics\">/metrics</a>        Prometheus text\n"
    "<a href=\"/-/healthy\">/-/healthy</a>      200 while all workers turn, 503 if one has not for 15 s\n"
    "<a href=\"/-/ready\">/-/ready</a>        200 while it should get traffic, 503 with the reasons while "
    "not\n"
    "<a href=\"/-/status\">/-/status</a>       what it is doing, as JSON\n"
    "<a href=\"/-/config\">/-/config</a>       the configuration in force\n"
    "<a href=\"/-/drain-wait\">/-/drain-wait</a>   answers when a drain is over; at once if there is none\n"
    "                  (?begin_within=SECONDS waits so long for one to begin)\n"
    "</pre>\n<p>Changes go through <code>noren ctl</code>.</p>\n";

struct SplitTarget {
    std::string_view path, query;
};

SplitTarget split(std::string_view target) {
    const std::size_t mark = target.find('?');
    if (mark == std::string_view::npos) return {target, {}};
    return {target.substr(0, mark), target.substr(mark + 1)};
}

OpsPage how_the_drain_stands(const OpsHooks& hooks) {
    if (!hooks.draining()) return text_page(200, "not draining");
    return hooks.drained() ? text_page(200, "drained") : text_page(503, "the drain is not over");
}

OpsPage how_healthy(const OpsHooks& hooks) {
    const std::string complaint = hooks.complaint();
    return complaint.empty() ? text_page(200, "healthy") : text_page(503, complaint);
}

OpsPage find_page(const OpsHooks& hooks, std::string_view path) {
    if (path == k_metrics) return {200, "text/plain; version=0.0.4; charset=utf-8", hooks.metrics()};
    if (path == "/-/healthy") return how_healthy(hooks);
    if (path == "/-/ready") return {hooks.ready() ? 200u : 503u, k_json, hooks.ready_json() + "\n"};
    if (path == "/-/status") return {200, k_json, hooks.status_json() + "\n"};
    if (path == "/-/config") return {200, "application/yaml", hooks.config_yaml()};
    if (path == k_drain_wait) return how_the_drain_stands(hooks);
    if (path == "/") return {200, "text/html; charset=utf-8", std::string(k_index)};
    return text_page(404, "not found; / lists what is here");
}

}  // namespace

OpsPage text_page(unsigned status, std::string_view line) {
    return {status, k_text, std::string(line).append("\n")};
}

OpsPage page_at(const OpsHooks& hooks, std::string_view target) {
    try {
        return find_page(hooks, split(target).path);
    } catch (const std::exception& problem) {
        return text_page(500, problem.what());
    }
}

bool is_metrics_page(std::string_view target) {
    return split(target).path == k_metrics;
}

std::optional<DrainWait> drain_wait_of(std::string_view target) {
    const auto [path, query] = split(target);
    if (path != k_drain_wait) return std::nullopt;
    DrainWait wait;
    if (query.empty()) return wait;
    constexpr std::string_view key = "begin_within=";
    const std::string_view value = query.starts_with(key) ? query.substr(key.size()) : std::string_view();
    unsigned number = 0;
    const char* const end = value.data() + value.size();
    const auto [rest, error] = std::from_chars(value.data(), end, number);
    if (value.empty() || error != std::errc() || rest != end || number > k_longest_begin) {
        wait.mistake = text_page(400, "expected begin_within=SECONDS, 0 to 60, or no query");
    } else {
        wait.begin_within = std::chrono::seconds(number);
    }
    return wait;
}

}  // namespace noren::proxy
