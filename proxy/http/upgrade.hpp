#pragma once
// Switching protocols on a connection (RFC 9110 section 7.8): what may be offered to the engine, and whether
// its 101 is an answer to that offer.

#include <string>
#include <string_view>

#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"

namespace noren::proxy::http {

/// The protocols the client would switch to, as the engine's Upgrade field; empty: none. Left out are HTTP/2
/// and TLS, which would turn the connection into one that neither side's checks apply to, and all of them if
/// the request has a body (both sides would have to agree where it ends and the new protocol begins) or is
/// HTTP/1.0 (7.8: to be ignored).
std::string upgrade_offer(const RequestHead& head, const Framing& framing);

/// The one protocol of the offer that this 101 switches to; empty: it switches to nothing that was offered.
std::string_view accepted_upgrade(std::string_view offer, const ResponseHead& head);

/// The head of a 101 that accepts an offer.
std::string switching_head(const ResponseHead& head, std::string_view protocol, std::string_view request_id);

}  // namespace noren::proxy::http
