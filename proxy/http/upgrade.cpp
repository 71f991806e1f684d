#include "proxy/http/upgrade.hpp"

#include "proxy/http/forward.hpp"

namespace noren::proxy::http {
namespace {

/// protocol-name ["/" protocol-version], each a token (RFC 9110 7.8).
bool is_protocol(std::string_view text) {
    const std::size_t slash = text.find('/');
    return is_token(text.substr(0, slash)) &&
           (slash == std::string_view::npos || is_token(text.substr(slash + 1)));
}

bool is_kept_from_engine(std::string_view protocol) {
    const std::string_view name = protocol.substr(0, protocol.find('/'));
    return same_name(name, "h2c") || same_name(name, "h2") || same_name(name, "http") ||
           same_name(name, "tls");
}

}  // namespace

std::string upgrade_offer(const RequestHead& head, const Framing& framing) {
    std::string offer;
    if (head.minor == 0 || framing.has_body() || !head.fields.lists("connection", "upgrade")) return offer;
    for (const Field& field : head.fields.all()) {
        if (!same_name(field.name, "upgrade")) continue;
        for_each_element(field.value, [&](std::string_view protocol) {
            if (!is_protocol(protocol) || is_kept_from_engine(protocol)) return;
            offer.append(offer.empty() ? "" : ", ").append(protocol);
        });
    }
    return offer;
}

std::string_view accepted_upgrade(std::string_view offer, const ResponseHead& head) {
    if (head.status != 101 || !head.fields.lists("connection", "upgrade") ||
        head.fields.count("upgrade") != 1)
        return {};
    const std::string_view chosen = head.fields.value("upgrade");
    std::string_view accepted;
    for_each_element(offer, [&](std::string_view protocol) {
        if (same_name(protocol, chosen)) accepted = protocol;
    });
    return accepted;
}

std::string switching_head(const ResponseHead& head, std::string_view protocol, std::string_view request_id) {
    std::string out = interim_head(head);
    out.resize(out.size() - 2);  // the empty line comes after ours
    out.append("Connection: Upgrade\r\nUpgrade: ").append(protocol).append("\r\n");
    if (!head.fields.has("x-request-id")) out.append("x-request-id: ").append(request_id).append("\r\n");
    return out.append("\r\n");
}

}  // namespace noren::proxy::http
