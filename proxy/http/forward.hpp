#pragma once
// Heads as they go on: written anew from the parsed form, hop-by-hop fields left behind (RFC 9110 7.6.1),
// with one clean framing.

#include <string>
#include <string_view>

#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"

namespace noren::proxy::http {

/// The request's head for the engine: one framing, Via appended (RFC 9110 7.6.3), x-request-id added if
/// absent, Max-Forwards counted down (RFC 9110 7.6.2; it is not 0 here). Fields with `_` in their name are
/// left out, as nginx does. upgrade: the protocols offered to it (upgrade_offer()), empty: none.
std::string upstream_head(const RequestHead& head, const Framing& framing, std::string_view request_id,
                          std::string_view upgrade = {});

/// How an answer goes to its client.
struct Delivery {
    Framing framing;         ///< until_close: the end of the connection ends the body
    bool keep_alive = true;  ///< false: "Connection: close" is said
    int client_minor = 1;
    std::string_view date;              ///< of receipt, said if the engine gave none (RFC 9110 6.6.1)
    std::string_view load_report = {};  ///< endpoint-load-metrics to be added; empty: none
};

/// head: one that response_framing() accepted.
std::string downstream_head(const ResponseHead& head, const Delivery& delivery, std::string_view request_id);

/// A 1xx head, for HTTP/1.1 clients only.
std::string interim_head(const ResponseHead& head);

/// The end of a chunked body: the last chunk, trailers if there are any, the empty line.
std::string chunked_end(const Fields& trailers);

/// "1a\r\n": a chunk's size line.
std::string chunk_size_line(std::uint64_t size);

}  // namespace noren::proxy::http
