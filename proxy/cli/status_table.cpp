#include "proxy/cli/status_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <ostream>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "proxy/ops/json_text.hpp"

namespace noren::proxy {
namespace {

namespace json = boost::json;

constexpr int k_name_width = 12;

/// Reads a status of any version without a surprise.
class Reader {
  public:
    explicit Reader(const json::object& status) : root_(status) {}

    /// pointer: "/admission/running". Empty if there is no such thing.
    const json::value* find(std::string_view pointer) const {
        boost::system::error_code error;
        return root_.find_pointer(json::string_view(pointer.data(), pointer.size()), error);
    }
    std::string text(std::string_view pointer) const {
        const json::value* value = find(pointer);
        return value ? plain_text(*value) : "?";
    }
    bool is_true(std::string_view pointer) const {
        const json::value* value = find(pointer);
        return value && value->is_bool() && value->as_bool();
    }
    double number(std::string_view pointer) const {
        const json::value* value = find(pointer);
        boost::system::error_code error;
        const double number = value && value->is_number() ? value->to_number<double>(error) : 0;
        return std::isnan(number) ? 0 : number;  // which 0e+700 is read as
    }
    /// The strings of a list; none if it is not there.
    json::array list(std::string_view pointer) const {
        const json::value* value = find(pointer);
        return value && value->is_array() ? value->as_array() : json::array();
    }

  private:
    const json::value root_;
};

/// "3h 12m": two units are enough to know.
std::string duration(double seconds) {
    constexpr double k_longest = 1e15;  // whatever a noren of another version says, it fits into an integer
    const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, k_longest));
    const auto two = [](std::int64_t a, const char* unit_a, std::int64_t b, const char* unit_b) {
        return std::to_string(a) + unit_a + " " + std::to_string(b) + unit_b;
    };
    if (whole >= 86'400) return two(whole / 86'400, "d", whole % 86'400 / 3'600, "h");
    if (whole >= 3'600) return two(whole / 3'600, "h", whole % 3'600 / 60, "m");
    if (whole >= 60) return two(whole / 60, "m", whole % 60, "s");
    return std::to_string(whole) + "s";
}

std::string joined(const json::array& list) {
    std::string text;
    for (const json::value& entry : list)
        text.append(text.empty() ? "" : ", ").append(plain_text(entry));
    return text;
}

std::string readiness(const Reader& status) {
    if (status.is_true("/ready")) return "yes";
    const std::string because = joined(status.list("/not_ready_because"));
    return because.empty() ? "no" : "no: " + because;
}

std::string engine(const Reader& status) {
    std::string text = status.text("/engine/address");
    if (status.text("/engine/tls") == "verified") text.append(", TLS");
    if (status.text("/engine/tls") == "unverified") text.append(", TLS NOT VERIFIED");
    text.append(status.is_true("/engine/up") ? ", up" : ", down");
    if (const std::string why = status.text("/engine/last_error"); !why.empty() && why != "?")
        text.append(" (").append(why).append(")");
    return text.append("; connections: ")
        .append(status.text("/engine/connections_active") + " active, ")
        .append(status.text("/engine/connections_idle") + " idle");
}

std::string tls(const Reader& status) {
    std::string text = "certificate ends " + status.text("/tls/certificate_expires");
    if (const std::string problem = status.text("/tls/problem"); !problem.empty())
        text.append("; BAD FILES, the ones before are in force: ").append(problem);
    return text;
}

std::string running(const Reader& status) {
    const auto limit = [&](std::string_view pointer) {
        const std::string text = status.text(pointer);
        return text == "0" ? std::string("any number") : text;
    };
    std::string text = status.text("/admission/running") + " of " + limit("/admission/concurrency_limit");
    if (status.is_true("/admission/limit_overridden"))
        text += " (until the next reload; configured: " + limit("/admission/configured_limit") + ")";
    return text;
}

std::string last_reload(const Reader& status) {
    return status.text("/config/last_reload_at") +
           (status.is_true("/config/last_reload_ok") ? ", good" : ", BAD: the config before it is in force");
}

void row(std::ostream& out, std::string_view name, const std::string& value) {
    out << std::left << std::setw(k_name_width) << name << value << "\n";
}

}  // namespace

void print_status(const json::object& object, std::ostream& out) {
    const Reader status(object);
    row(out, "noren",
        status.text("/version") + " (" + status.text("/revision") + "), up " +
            duration(status.number("/uptime_seconds")));
    row(out, "ready", readiness(status));
    row(out, "drain", status.text("/drain"));
    row(out, "engine", engine(status));
    row(out, "running", running(status));
    row(out, "waiting",
        status.text("/admission/waiting") + " of " + status.text("/admission/queue_capacity"));
    row(out, "in flight",
        status.text("/inflight") +
            "; in the engine without output yet: " + status.text("/awaiting_first_token"));
    row(out, "listening",
        status.text("/listen") + ", " + status.text("/connections") + " connections, " +
            status.text("/workers") + " workers");
    if (status.is_true("/tls/on")) row(out, "TLS", tls(status));
    row(out, "ops", status.text("/ops"));
    const std::string file = status.text("/config/file");
    row(out, "config", file.empty() ? "no file" : file);
    if (const auto keys = status.list("/config/stronger"); !file.empty() && !keys.empty())
        row(out, "stronger", "than the file: " + joined(keys));
    row(out, "last reload", last_reload(status));
    for (const json::value& error : status.list("/config/last_reload_errors"))
        row(out, "", plain_text(error));
    if (const auto keys = status.list("/config/restart_required"); !keys.empty())
        row(out, "restart", "needed for " + joined(keys));
}

}  // namespace noren::proxy
