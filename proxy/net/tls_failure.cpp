#include "proxy/net/tls_failure.hpp"

#include <array>
#include <cstddef>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

namespace noren::proxy::net {
namespace {

/// Which check the engine's certificate did not pass.
std::string_view text_of_verification(long result) {
    switch (result) {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return "the engine's certificate has expired";
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return "the engine's certificate is not valid yet";
        case X509_V_ERR_HOSTNAME_MISMATCH:
        case X509_V_ERR_IP_ADDRESS_MISMATCH:
            return "the engine's certificate is for another host (upstream.tls.server_name)";
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_CERT_SIGNATURE_FAILURE:  // a CA of the same name: it has been renewed
            return "the engine's certificate is signed by none of the trusted CAs (upstream.tls.ca)";
        case X509_V_ERR_INVALID_PURPOSE:
            return "the engine's certificate is not meant for a server";
        default:
            return "the engine's certificate is not valid";
    }
}

TlsFailure failure_of_reason(int reason, const SSL* session) {
    switch (reason) {
        case SSL_R_CERTIFICATE_VERIFY_FAILED:
            return {TlsFault::certificate, text_of_verification(SSL_get_verify_result(session))};
        case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
        case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
            return {TlsFault::certificate, "the engine does not accept noren's certificate"};
        case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
        case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
        case SSL_R_TLSV1_ALERT_INSUFFICIENT_SECURITY:
        case SSL_R_UNSUPPORTED_PROTOCOL:
            return {
                TlsFault::protocol,
                "the engine and noren have no TLS version or cipher in common, or it wants a certificate"};
        case SSL_R_WRONG_VERSION_NUMBER:
            return {TlsFault::protocol, "the engine does not speak TLS on this port"};
        default:
            return {TlsFault::protocol, "the TLS of the engine cannot be understood"};
    }
}

/// The same without the text where it would blame an engine for what a client did.
TlsFailure told(TlsFailure failure, const SSL* session) {
    if (SSL_is_server(session)) failure.text = {};
    return failure;
}

}  // namespace

std::string_view word_of(TlsFault fault) {
    constexpr std::array<std::string_view, 5> k_words = {"ok", "plain_text", "closed", "certificate",
                                                         "protocol"};
    return k_words[static_cast<std::size_t>(fault)];
}

TlsFailure tls_failure_of(const ssl_st* session) {
    const unsigned long error =
        ERR_peek_last_error();  // before it may stand what led to it, in terms of X.509
    const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    return told(failure_of_reason(reason, session), session);
}

TlsFailure tls_hang_up(const ssl_st* session) {
    return told({TlsFault::closed, "the engine closed the connection in the TLS handshake"}, session);
}

}  // namespace noren::proxy::net
