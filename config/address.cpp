#include "config/address.hpp"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "config/ascii.hpp"

namespace noren::config {

namespace {

constexpr std::string_view k_listen = "IPv4:port, [IPv6]:port, :port or unix:/path";
constexpr std::string_view k_listen_tcp = "IPv4:port, [IPv6]:port or :port";
constexpr std::string_view k_upstream = "http://host:port, https://host:port or unix:/path";
constexpr std::size_t k_longest_host = 253;  // RFC 1035 2.3.4, without the root's dot

ParsedAddress refuse(std::string_view expected) {
    return {std::nullopt, std::string(expected)};
}

/// Names as DNS and container networks know them; RFC 1123 has no `_`, but compose files do.
bool is_name_char(char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
}

bool is_address(int family, std::string_view text) {
    // inet_pton stops at a NUL, which an escape in the YAML can put there.
    if (text.find('\0') != std::string_view::npos) return false;
    unsigned char binary[sizeof(in6_addr)];
    return inet_pton(family, std::string(text).c_str(), binary) == 1;
}

/// An IPv6 address, with or without a zone (`fe80::1%eth0`).
bool is_ipv6(std::string_view text) {
    const std::size_t percent = text.find('%');
    if (percent != std::string_view::npos) {
        const std::string_view zone = text.substr(percent + 1);
        if (zone.empty() || !std::all_of(zone.begin(), zone.end(), is_name_char)) return false;
    }
    return is_address(AF_INET6, text.substr(0, percent));
}

bool is_host_name(std::string_view text) {
    if (text.empty() || text.size() > k_longest_host) return false;
    if (!std::all_of(text.begin(), text.end(), is_name_char)) return false;
    if (text.front() == '.' || text.front() == '-' || text.find("..") != std::string_view::npos) return false;
    // A name whose last label is a number can only be meant as an IPv4 address: `10.0.0.300` is a slip.
    const std::string_view last = text.substr(text.rfind('.') + 1);
    if (!last.empty() && std::all_of(last.begin(), last.end(), is_digit)) return is_address(AF_INET, text);
    return true;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, port);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return port;
}

struct Authority {
    std::string_view host;
    std::string_view port;  // without the colon
    bool has_port = false;
};

/// `host`, `host:port`, `[v6]` or `[v6]:port`, checked but for the port.
std::optional<Authority> split_authority(std::string_view text) {
    Authority authority;
    std::string_view rest;
    if (text.starts_with('[')) {
        const std::size_t close = text.find(']');
        if (close == std::string_view::npos) return std::nullopt;
        authority.host = text.substr(1, close - 1);
        if (!is_ipv6(authority.host)) return std::nullopt;
        rest = text.substr(close + 1);
    } else {
        const std::size_t colon = std::min(text.find(':'), text.size());
        authority.host = text.substr(0, colon);
        if (!authority.host.empty() && !is_host_name(authority.host)) return std::nullopt;
        rest = text.substr(colon);
    }
    if (rest.empty()) return authority;
    if (rest.front() != ':') return std::nullopt;
    authority.has_port = true;
    authority.port = rest.substr(1);
    return authority;
}

ParsedAddress parse_unix(std::string_view path) {
    if (!is_socket_path(path)) {
        return refuse("unix: and an absolute path of at most " +
                      std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
    }
    return {Address{"", 0, std::string(path)}, ""};
}

/// A name is refused: it may have several addresses, or none on the machine where it counts.
ParsedAddress parse_tcp(std::string_view text, std::string_view expected) {
    const auto authority = split_authority(text);
    if (!authority || !authority->has_port) return refuse(expected);
    const std::string_view host = authority->host;
    if (host == "localhost") return refuse(std::string(expected) + ": 127.0.0.1 or [::1] for localhost");
    if (!host.empty() && !is_ipv6(host) && !is_address(AF_INET, host))
        return refuse(std::string(expected) + ": an address, names are not looked up");
    const auto port = parse_port(authority->port);
    if (!port) return refuse(std::string(expected) + " with a port from 0 to 65535");
    return {Address{std::string(host), *port, ""}, ""};
}

}  // namespace

ParsedAddress parse_listen(std::string_view text) {
    if (text.starts_with("unix:")) return parse_unix(text.substr(5));
    return parse_tcp(text, k_listen);
}

ParsedAddress parse_listen_tcp(std::string_view text) {
    return parse_tcp(text, k_listen_tcp);
}

ParsedAddress parse_upstream(std::string_view text) {
    constexpr std::string_view http = "http://";
    constexpr std::string_view https = "https://";
    if (text.starts_with("unix:")) return parse_unix(text.substr(5));
    const bool tls = text.starts_with(https);
    if (!tls && !text.starts_with(http)) return refuse(k_upstream);
    text.remove_prefix(tls ? https.size() : http.size());

    const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
    const std::string_view after = text.substr(end);
    text = text.substr(0, end);
    if (text.find('@') != std::string_view::npos) {
        return refuse(std::string(k_upstream) +
                      " without user and password: noren adds no credentials, it passes on the client's");
    }
    if (!after.empty() && after != "/") {
        return refuse(std::string(k_upstream) + " without a path: noren passes paths on as they come");
    }
    const auto authority = split_authority(text);
    if (!authority || authority->host.empty()) return refuse(k_upstream);
    const std::uint16_t usual = tls ? 443 : 80;
    const auto port = authority->has_port ? parse_port(authority->port) : usual;
    if (!port || *port == 0) return refuse(std::string(k_upstream) + " with a port from 1 to 65535");
    return {Address{std::string(authority->host), *port, "", tls}, ""};
}

std::string to_string(const Address& address) {
    if (address.is_unix()) return "unix:" + address.path;
    const bool ipv6 = address.host.find(':') != std::string::npos;
    const std::string host = ipv6 ? '[' + address.host + ']' : address.host;
    return host + ':' + std::to_string(address.port);
}

bool is_host(std::string_view text) {
    return is_host_name(text) || is_ipv6(text);
}

bool is_socket_path(std::string_view text) {
    return text.starts_with('/') && text.size() < sizeof(sockaddr_un::sun_path) &&
           std::none_of(text.begin(), text.end(), is_control);
}

std::string mask_userinfo(std::string_view text) {
    const std::size_t at = text.rfind('@');
    if (at == std::string_view::npos || text.starts_with("unix:")) return std::string(text);
    const std::size_t slashes = text.find("//");
    const std::size_t begin = slashes == std::string_view::npos || slashes > at ? 0 : slashes + 2;
    return std::string(text.substr(0, begin)).append("***").append(text.substr(at));
}

}  // namespace noren::config
