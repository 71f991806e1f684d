#include "tests/support/tls_peer.hpp"

#include <csignal>
#include <stdexcept>
#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

namespace test {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Bio bio_of(const std::string& pem) {
    return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

Certificate certificate_in(const std::string& pem) {
    return {PEM_read_bio_X509(bio_of(pem).get(), nullptr, nullptr, nullptr), X509_free};
}

void show(SSL_CTX* context, const Certified& own) {
    if (own.certificate.empty()) return;
    EVP_PKEY* key = PEM_read_bio_PrivateKey(bio_of(own.key).get(), nullptr, nullptr, nullptr);
    const bool taken = SSL_CTX_use_certificate(context, certificate_in(own.certificate).get()) == 1 &&
                       SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    if (!taken) throw std::runtime_error("not a certificate to show");
}

std::string reason() {
    const char* text = ERR_reason_error_string(ERR_peek_error());
    return text ? text : "the connection ended";
}

}  // namespace

TlsPeer::TlsPeer(Peer connection, const TlsManner& manner, bool is_server)
    : context_(SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method()), SSL_CTX_free),
      connection_(std::move(connection)),
      session_(nullptr, SSL_free) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's socket BIO raises it
    SSL_CTX* context = context_.get();
    show(context, manner.own);
    if (manner.most_version != 0) {
        // Level 0, as TLS 1.1 signs with SHA-1: the refusal must be the other side's.
        SSL_CTX_set_security_level(context, 0);
        SSL_CTX_set_min_proto_version(context, 0);
        SSL_CTX_set_max_proto_version(context, manner.most_version);
    }
    if (!manner.ca.empty()) {
        X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate_in(manner.ca).get());
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    session_.reset(SSL_new(context));
    SSL* session = session_.get();
    if (!manner.server_name.empty()) SSL_set_tlsext_host_name(session, manner.server_name.c_str());
    if (!manner.alpn.empty())
        SSL_set_alpn_protos(session, reinterpret_cast<const unsigned char*>(manner.alpn.data()),
                            static_cast<unsigned>(manner.alpn.size()));
    SSL_set_fd(session, connection_.descriptor());
    ERR_clear_error();
    const int done = is_server ? SSL_accept(session) : SSL_connect(session);
    if (done != 1) problem_ = reason();
}

TlsPeer::~TlsPeer() = default;

TlsPeer TlsPeer::client(Peer connected, const TlsManner& manner) {
    return {std::move(connected), manner, false};
}

TlsPeer TlsPeer::server(Peer accepted, const TlsManner& manner) {
    return {std::move(accepted), manner, true};
}

std::string TlsPeer::version() const {
    return SSL_get_version(session_.get());
}

std::string TlsPeer::alpn() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(session_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
}

std::string TlsPeer::shown_name() const {
    const Certificate shown(SSL_get1_peer_certificate(session_.get()), X509_free);
    if (!shown) return {};
    std::string name(64, '\0');
    const int size = X509_NAME_get_text_by_NID(X509_get_subject_name(shown.get()), NID_commonName,
                                               name.data(), static_cast<int>(name.size()));
    name.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return name;
}

bool TlsPeer::renegotiate() {
    ERR_clear_error();
    return SSL_renegotiate(session_.get()) == 1 && SSL_do_handshake(session_.get()) == 1;
}

void TlsPeer::send(std::string_view bytes) {
    while (!bytes.empty()) {
        std::size_t taken = 0;
        ERR_clear_error();
        if (SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &taken) != 1) return;
        bytes.remove_prefix(taken);
    }
}

std::string TlsPeer::receive(std::size_t most) {
    std::string buffer(most, '\0');
    std::size_t size = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(session_.get(), buffer.data(), buffer.size(), &size);
    if (result != 1) {
        clean_ = SSL_get_error(session_.get(), result) == SSL_ERROR_ZERO_RETURN;
        if (!clean_) problem_ = reason();
        size = 0;
    }
    buffer.resize(size);
    return buffer;
}

void TlsPeer::end_writing() {
    SSL_shutdown(session_.get());
}

void TlsPeer::close() {
    end_writing();
    cut();
}

void TlsPeer::cut() {
    connection_.close();
}

void TlsPeer::reset() {
    connection_.reset();
}

}  // namespace test
