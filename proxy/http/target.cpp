#include "proxy/http/target.hpp"

#include <algorithm>
#include <array>

namespace noren::proxy::http {
namespace {

constexpr std::string_view k_unreserved =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
constexpr std::string_view k_sub_delims = "!$&'()*+,;=";

constexpr std::array<bool, 256> set_of(std::string_view a, std::string_view b, std::string_view c) {
    std::array<bool, 256> table{};
    for (const std::string_view part : {a, b, c})
        for (const char ch : part)
            table[static_cast<unsigned char>(ch)] = true;
    return table;
}

/// Path and query characters of RFC 3986, and those that clients send unescaped all the same and that mean
/// nothing to a parser. '#', '"', '<', '>', '\\', '`', blanks, controls and bytes above 0x7e are refused.
constexpr auto k_path_or_query = set_of(k_unreserved, k_sub_delims, ":@/?%[]{}|^");
constexpr auto k_host = set_of(k_unreserved, k_sub_delims, "%");
constexpr auto k_ip_literal = set_of(k_unreserved, k_sub_delims, ":");

bool all_in(std::string_view text, const std::array<bool, 256>& set) {
    return std::all_of(text.begin(), text.end(), [&](char c) { return set[static_cast<unsigned char>(c)]; });
}

bool starts_with_scheme(std::string_view target, std::string_view scheme) {
    return target.size() > scheme.size() && same_name(target.substr(0, scheme.size()), scheme);
}

Target refuse(std::string_view detail) {
    return {{}, {}, HeadError{400, detail}};
}

}  // namespace

bool is_valid_authority(std::string_view authority) {
    std::string_view port;
    if (!authority.empty() && authority.front() == '[') {
        const std::size_t close = authority.find(']');
        if (close == std::string_view::npos || close < 3 ||
            !all_in(authority.substr(1, close - 1), k_ip_literal))
            return false;
        port = authority.substr(close + 1);
        if (!port.empty() && port.front() != ':') return false;
    } else {
        const std::size_t colon = authority.find(':');
        if (!all_in(authority.substr(0, colon), k_host)) return false;
        if (colon != std::string_view::npos) port = authority.substr(colon);
    }
    if (port.empty()) return true;
    port.remove_prefix(1);
    return port.size() <= 5 &&
           std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Target parse_target(std::string_view target, std::string_view method) {
    if (target == "*") {
        if (method != "OPTIONS") return refuse("the target * goes with OPTIONS only");
        return {target, {}, std::nullopt};
    }
    std::string_view authority;
    for (const std::string_view scheme : {std::string_view("http://"), std::string_view("https://")}) {
        if (!starts_with_scheme(target, scheme)) continue;
        target.remove_prefix(scheme.size());
        const std::size_t end = target.find_first_of("/?");
        authority = target.substr(0, end);
        // An http URI without a host is to be refused (RFC 9110 4.2.1), while a Host field may be empty.
        if (authority.empty() || authority.front() == ':' || !is_valid_authority(authority))
            return refuse("the target's authority is not a host and port");
        // About the server as a whole (RFC 9112 3.2.4).
        if (end == std::string_view::npos && method == "OPTIONS") return {"*", authority, std::nullopt};
        target = end == std::string_view::npos ? std::string_view("/") : target.substr(end);
        // "http://host?query" has an empty path, which origin-form cannot say; nobody sends it.
        if (target.front() == '?') return refuse("the target has no path");
        break;
    }
    if (target.empty() || target.front() != '/') return refuse("the target is not a path");
    if (!all_in(target, k_path_or_query)) return refuse("the target holds a character that must be escaped");
    return {target, authority, std::nullopt};
}

}  // namespace noren::proxy::http
