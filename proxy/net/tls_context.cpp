#include "proxy/net/tls_context.hpp"

#include <arpa/inet.h>

#include <array>
#include <ctime>
#include <new>
#include <string_view>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace noren::proxy::net {
namespace {

using Part = TlsProblem::Part;

// For TLS 1.2; those of 1.3 are all sound. Mozilla's "intermediate" without the finite-field ones.
constexpr const char* k_ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
// ALPN (RFC 7301 3.1): a length and a name.
constexpr std::array<unsigned char, 9> k_http11 = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

constexpr const char* k_expected_certificate = "a PEM certificate, followed by its chain";
constexpr const char* k_expected_key = "the private key of the certificate, as PEM without a passphrase";
constexpr const char* k_expected_ca = "PEM certificates of the CAs to trust";

template <auto free>
struct Freer {
    template <typename T>
    void operator()(T* object) const {
        free(object);
    }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

Bio bio_of(const std::string& pem) {
    return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

/// OpenSSL's words for what went wrong last.
std::string last_reason() {
    const char* reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "no reason given";
}

/// All certificates of a text. Nothing, with a problem added, if there is none or one cannot be read: half of
/// a chain that was cut while being written must not pass for a shorter one.
std::vector<Certificate> certificates_in(const std::string& pem, Part part, const char* expected,
                                         TlsProblems& problems) {
    ERR_clear_error();
    const Bio bio = bio_of(pem);
    std::vector<Certificate> found;
    while (Certificate next{PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr)})
        found.push_back(std::move(next));
    const unsigned long error = ERR_peek_last_error();
    const bool at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    if (at_end && !found.empty()) return found;
    problems.push_back(
        {part, at_end ? "no certificate" : "a certificate that cannot be read (" + last_reason() + ")",
         expected});
    return {};
}

/// Instead of OpenSSL's own, which asks at the terminal.
int refuse_passphrase(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
}

PrivateKey key_in(const std::string& pem, TlsProblems& problems) {
    ERR_clear_error();
    const Bio bio = bio_of(pem);
    bool asked = false;
    PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, refuse_passphrase, &asked));
    if (key) return key;
    problems.push_back({Part::key, asked ? "a key with a passphrase" : "no private key", k_expected_key});
    return nullptr;
}

int select_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
    unsigned char* out = nullptr;
    const int found =
        SSL_select_next_proto(&out, chosen_size, k_http11.data(), k_http11.size(), offered, offered_size);
    *chosen = out;
    // RFC 7301 3.2: a client that wants something else is told so, instead of being answered in HTTP/1.1.
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool is_address(const std::string& host) {
    std::array<unsigned char, sizeof(in6_addr)> binary{};
    return ::inet_pton(AF_INET, host.c_str(), binary.data()) == 1 ||
           ::inet_pton(AF_INET6, host.c_str(), binary.data()) == 1;
}

}  // namespace

TlsContext::TlsContext(bool is_server)
    : handle_(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()), SSL_CTX_free),
      is_server_(is_server) {
    SSL_CTX* ctx = handle_.get();
    if (!ctx) throw std::bad_alloc();
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_cipher_list(ctx, k_ciphers);
    // Buffers are given back while a connection is idle. What is in a record that could not be sent is told
    // again by the caller, from wherever it is kept by then.
    SSL_CTX_set_mode(
        ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ctx, 1);  // one read(2) for a record, not one for its head and one for the rest
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);  // tickets need no memory and no lock of ours
}

void TlsContext::show(const std::string& certificate, const std::string& key, TlsProblems& problems) {
    SSL_CTX* ctx = handle_.get();
    std::vector<Certificate> chain =
        certificates_in(certificate, Part::certificate, k_expected_certificate, problems);
    const PrivateKey own_key = key_in(key, problems);
    if (chain.empty() || !own_key) return;
    if (X509_check_private_key(chain.front().get(), own_key.get()) != 1) {
        problems.push_back({Part::key, "the key of another certificate", k_expected_key});
        return;
    }
    bool taken = SSL_CTX_use_certificate(ctx, chain.front().get()) == 1 &&
                 SSL_CTX_use_PrivateKey(ctx, own_key.get()) == 1;
    for (std::size_t i = 1; taken && i < chain.size(); ++i)
        taken = SSL_CTX_add1_chain_cert(ctx, chain[i].get()) == 1;
    if (!taken)
        problems.push_back({Part::certificate, "a certificate that cannot be used (" + last_reason() + ")",
                            k_expected_certificate});
}

void TlsContext::trust(const std::string& ca, TlsProblems& problems) {
    X509_STORE* store = SSL_CTX_get_cert_store(handle_.get());
    for (const Certificate& one : certificates_in(ca, Part::ca, k_expected_ca, problems)) {
        X509_STORE_add_cert(store, one.get());
        if (is_server_) SSL_CTX_add_client_CA(handle_.get(), one.get());
    }
    // A file may hold an intermediate CA alone; what the operator names there is trusted as it is.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(handle_.get()), X509_V_FLAG_PARTIAL_CHAIN);
}

/// RFC 9110 4.3.4: a certificate for another host is not the engine's.
void TlsContext::expect(const std::string& server_name) {
    X509_VERIFY_PARAM* param = SSL_CTX_get0_param(handle_.get());
    std::string name = server_name.substr(0, server_name.find('%'));  // the zone of a link-local address
    if (is_address(name)) {
        X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str());
        return;
    }
    if (name.ends_with('.')) name.pop_back();
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    X509_VERIFY_PARAM_set1_host(param, name.data(), name.size());
    sni_ = name;
}

std::shared_ptr<const TlsContext> TlsContext::server(const Server& material, TlsProblems& problems) {
    const std::size_t before = problems.size();
    std::shared_ptr<TlsContext> context(new TlsContext(true));
    SSL_CTX* ctx = context->handle();
    if (material.tls13_only) SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_alpn_select_cb(ctx, select_protocol, nullptr);
    context->show(material.certificate, material.key, problems);
    if (!material.client_ca.empty()) {
        context->trust(material.client_ca, problems);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
        // A resumed session is not verified again: a ticket would outlive the certificate it was given for.
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(ctx, 0);
        context->verifies_ = true;
    }
    return problems.size() == before ? context : nullptr;
}

std::shared_ptr<const TlsContext> TlsContext::client(const Client& material, TlsProblems& problems) {
    const std::size_t before = problems.size();
    std::shared_ptr<TlsContext> context(new TlsContext(false));
    SSL_CTX* ctx = context->handle();
    SSL_CTX_set_alpn_protos(ctx, k_http11.data(), k_http11.size());
    if (!material.certificate.empty() || !material.key.empty())
        context->show(material.certificate, material.key, problems);
    if (material.ca.empty()) {
        SSL_CTX_set_default_verify_paths(ctx);
    } else {
        context->trust(material.ca, problems);
    }
    context->expect(material.server_name);
    context->verifies_ = material.verify;
    SSL_CTX_set_verify(ctx, material.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
    return problems.size() == before ? context : nullptr;
}

std::optional<std::chrono::system_clock::time_point> TlsContext::expiry() const {
    const X509* own = SSL_CTX_get0_certificate(handle_.get());
    std::tm end{};
    if (!own || ASN1_TIME_to_tm(X509_get0_notAfter(own), &end) != 1) return std::nullopt;
    return std::chrono::system_clock::from_time_t(::timegm(&end));
}

}  // namespace noren::proxy::net
