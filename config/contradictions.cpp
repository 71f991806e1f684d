#include "config/contradictions.hpp"

#include <optional>
#include <utility>

#include "config/address.hpp"
#include "config/units.hpp"

namespace noren::config {

namespace {

using Found = std::vector<Contradiction>;

bool is_any(const std::string& host) {
    return host.empty() || host == "0.0.0.0" || host == "::";
}

bool is_loopback(const std::string& host) {
    return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Whether both cannot be listened on at once.
bool collide(const Address& a, const Address& b) {
    if (a.is_unix() || b.is_unix()) return a.path == b.path;
    if (a.port != b.port || a.port == 0) return false;
    return a.host == b.host || is_any(a.host) || is_any(b.host);
}

/// Whether connecting to `target` from this machine arrives at `listener`.
bool arrives_at(const Address& target, const Address& listener) {
    if (target.is_unix() || listener.is_unix()) return target.path == listener.path;
    if (target.port != listener.port) return false;
    if (target.host == "localhost" && is_loopback(listener.host)) return true;
    return target.host == listener.host || (is_loopback(target.host) && is_any(listener.host));
}

/// The addresses; nothing where the text is not valid, which is another mistake.
struct Ends {
    std::optional<Address> listen;
    std::optional<Address> ops;
    std::optional<Address> upstream;
    std::optional<Address> control;

    explicit Ends(const Config& config)
        : listen(parse_listen(config.listen).address),
          ops(parse_listen_tcp(config.ops.listen).address),
          upstream(parse_upstream(config.upstream.url).address) {
        if (!config.control.socket.empty()) control = Address{"", 0, config.control.socket};
    }
};

void check_addresses(const Config& config, Found& found) {
    const Ends ends(config);
    const std::string upstream = '"' + mask_userinfo(config.upstream.url) + '"';
    if (ends.listen && ends.ops && collide(*ends.listen, *ends.ops)) {
        found.push_back({{"ops.listen", "listen"},
                         '"' + config.ops.listen + "\" while listen is \"" + config.listen + '"',
                         "two different addresses"});
    }
    if (ends.listen && ends.control && collide(*ends.listen, *ends.control)) {
        found.push_back({{"control.socket", "listen"}, "the socket of listen", "a socket of its own"});
    }
    if (!ends.upstream) return;
    if (ends.listen && arrives_at(*ends.upstream, *ends.listen)) {
        found.push_back({{"upstream.url", "listen"},
                         upstream + " while listen is \"" + config.listen + '"',
                         "the address of the engine, not of noren itself"});
    }
    if (ends.ops && arrives_at(*ends.upstream, *ends.ops)) {
        found.push_back({{"upstream.url", "ops.listen"},
                         upstream + " while ops.listen is \"" + config.ops.listen + '"',
                         "the address of the engine, not of noren itself"});
    }
    if (ends.control && arrives_at(*ends.upstream, *ends.control)) {
        found.push_back({{"upstream.url", "control.socket"},
                         upstream + ", which is control.socket",
                         "the address of the engine, not of noren itself"});
    }
}

/// One file of a pair says nothing without the other.
void check_pair(std::string_view one, const std::string& one_path, std::string_view other,
                const std::string& other_path, Found& found) {
    if (one_path.empty() == other_path.empty()) return;
    const bool first = other_path.empty();
    found.push_back({{first ? one : other, first ? other : one},
                     std::string(first ? one : other) + " without " + std::string(first ? other : one),
                     "both, or neither"});
}

void check_tls(const Config& config, Found& found) {
    const Tls& tls = config.tls;
    check_pair("tls.certificate", tls.certificate, "tls.key", tls.key, found);
    if (!tls.client_ca.empty() && tls.certificate.empty() && tls.key.empty()) {
        found.push_back({{"tls.client_ca", "tls.certificate"},
                         "tls.client_ca without tls.certificate",
                         "a certificate to speak TLS with"});
    }
    const UpstreamTls& upstream = config.upstream.tls;
    check_pair("upstream.tls.certificate", upstream.certificate, "upstream.tls.key", upstream.key, found);
    const auto engine = parse_upstream(config.upstream.url).address;
    if (!engine || engine->tls) return;
    // Where TLS is described it is wanted: to go without it for want of one letter must not happen unseen.
    const std::pair<std::string_view, bool> described[] = {
        {"upstream.tls.ca", !upstream.ca.empty()},
        {"upstream.tls.server_name", !upstream.server_name.empty()},
        {"upstream.tls.certificate", !upstream.certificate.empty()}};
    for (const auto& [key, is_set] : described) {
        if (!is_set) continue;
        found.push_back(
            {{key, "upstream.url"},
             std::string(key) + " while upstream.url is \"" + mask_userinfo(config.upstream.url) + '"',
             "an https:// url, or no upstream.tls"});
    }
}

void check_times(const Config& config, Found& found) {
    const Duration total = config.timeouts.total;
    const Duration queue = config.admission.queue_timeout;
    if (total > Duration{0} && queue > total) {
        found.push_back({{"admission.queue_timeout", "timeouts.total"},
                         "admission.queue_timeout " + format_duration(queue) + " with timeouts.total " +
                             format_duration(total),
                         "a wait no longer than the whole exchange may take"});
    }
}

void check_models(const Config& config, Found& found) {
    const std::size_t named = config.metrics.models.size();
    if (named > config.metrics.max_models) {
        found.push_back(
            {{"metrics.max_models", "metrics.models"},
             std::to_string(named) + " models with max_models " + std::to_string(config.metrics.max_models),
             "room for all models that are named"});
    }
}

void check_engine_metrics(const Config& config, Found& found) {
    const EngineMetrics& page = config.engine_metrics;
    if (page.add_queue == "on" && page.merge == "off") {
        found.push_back({{"engine_metrics.add_queue", "engine_metrics.merge"},
                         "engine_metrics.add_queue without engine_metrics.merge",
                         "merge: on, whose page it changes"});
    }
    const auto own = parse_listen_tcp(config.ops.listen).address;
    const auto target = parse_upstream(page.url).address;
    if (own && target && arrives_at(*target, *own)) {
        found.push_back({{"engine_metrics.url", "ops.listen"},
                         '"' + page.url + "\" while ops.listen is \"" + config.ops.listen + '"',
                         "the address of the engine's page, not of noren's own"});
    }
}

}  // namespace

std::vector<Contradiction> find_contradictions(const Config& config) {
    Found found;
    check_addresses(config, found);
    check_tls(config, found);
    check_times(config, found);
    check_models(config, found);
    check_engine_metrics(config, found);
    return found;
}

}  // namespace noren::config
