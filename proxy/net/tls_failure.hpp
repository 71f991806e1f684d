#pragma once
// Why TLS failed, in few words that can be counted and one sentence that can be acted on.

#include <string_view>

struct ssl_st;

namespace noren::proxy::net {

enum class TlsFault : unsigned char {
    none,
    plain_text,   ///< the client speaks plain HTTP
    closed,       ///< the peer hung up, without a word
    certificate,  ///< a certificate was missing or not accepted, by one side or the other
    protocol,     ///< no version, cipher or protocol in common; or bytes that are no TLS
};

/// As a label: "plain_text", "closed", ...
std::string_view word_of(TlsFault fault);

struct TlsFailure {
    TlsFault fault = TlsFault::none;
    /// Of static storage. Tells of the engine, so empty in sessions with clients.
    std::string_view text;
};

/// By OpenSSL's error queue of this thread, right after a call has failed.
TlsFailure tls_failure_of(const ssl_st* session);

/// The connection ended without TLS's own end.
TlsFailure tls_hang_up(const ssl_st* session);

}  // namespace noren::proxy::net
