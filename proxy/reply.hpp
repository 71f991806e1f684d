#pragma once
// What the answers that noren makes itself have in common.

#include <cstddef>
#include <string>
#include <string_view>

namespace noren::proxy {

/// What an Allow field says: everything but CONNECT (a gateway opens no tunnels) and TRACE.
inline constexpr std::string_view k_allowed_methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// How an answer goes to its client, whatever it says.
struct Reply {
    std::string_view date;        ///< now, as the Date field has it (RFC 9110 6.6.1)
    std::string_view request_id;  ///< empty: refused before it had one
    bool keep_alive = true;       ///< false: "Connection: close" is said
    int client_minor = 1;         ///< 0: has to be told that the connection stays open (RFC 9112 9.3)
    bool with_body = true;        ///< false: to HEAD
};

/// How much of a whole answer stands behind its head.
std::size_t body_size(std::string_view answer);

/// The field lines that each of them ends with.
void append_reply_fields(std::string& head, const Reply& reply);

/// To an OPTIONS request that asks noren (RFC 9110 7.6.2, 9.3.7): what may be sent through it.
std::string options_response(const Reply& reply);

}  // namespace noren::proxy
