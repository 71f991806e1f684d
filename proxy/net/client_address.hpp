#pragma once
// Who is at the other end of a connection, as far as an address can tell.

#include <array>
#include <optional>
#include <string>

namespace noren::proxy::net {

/// The peer's IPv4 address, mapped into IPv6, or the /64 of its IPv6 address with the rest at 0. Nothing on a
/// Unix socket, or if the peer is gone.
std::optional<std::array<unsigned char, 16>> client_key(int descriptor);

/// "192.0.2.1", "2001:db8:0:1::/64".
std::string to_text(const std::array<unsigned char, 16>& client_key);

}  // namespace noren::proxy::net
