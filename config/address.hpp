#pragma once
// Where noren listens and where the engine is, from the text in the config to host, port and path.
// Pure text: nothing is resolved and no socket is touched.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace noren::config {

/// Where somebody listens: TCP (host and port) or a Unix socket (path).
struct Address {
    std::string host;  ///< name or address, IPv6 without brackets; empty = every interface (listening only)
    std::uint16_t port = 0;  ///< 0 = any free port (listening only)
    std::string path;        ///< absolute path of a Unix socket; then host and port mean nothing
    bool tls = false;        ///< https:// (upstream only)

    bool is_unix() const { return !path.empty(); }

    bool operator==(const Address&) const = default;
};

struct ParsedAddress {
    std::optional<Address> address;
    std::string expected;  ///< what would have been right; set exactly if there is no address
};

/// `IPv4:port`, `[IPv6]:port`, `:port` or `unix:/path`. Names are refused: what is good here can be bound
/// without looking anything up.
ParsedAddress parse_listen(std::string_view text);

/// As parse_listen, without `unix:`.
ParsedAddress parse_listen_tcp(std::string_view text);

/// `http://host[:port]` (port 80 if left out) or `https://host[:port]` (443), a lone `/` may follow, or
/// `unix:/path`. Refused with their own words: a path or query (noren passes paths on as they come), user and
/// password (noren adds no credentials; the client's own are passed on).
ParsedAddress parse_upstream(std::string_view text);

/// `host:port`, `[v6]:port`, `:port` or `unix:/path`, for people and for parse_listen.
std::string to_string(const Address& address);

/// Whether text can be a host of a URL: a name, an IPv4 or an IPv6 address (without brackets).
bool is_host(std::string_view text);

/// Whether text can be the path of a Unix socket: absolute, at most 107 bytes, no control characters.
bool is_socket_path(std::string_view text);

/// `text` with whatever stands before an `@` (user, password, token) as `***`. For any text, also one that is
/// no URL at all: better to hide too much of a slip than to log a password. Socket paths stay as they are.
std::string mask_userinfo(std::string_view text);

}  // namespace noren::config
