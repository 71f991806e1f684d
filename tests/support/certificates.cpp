#include "tests/support/certificates.hpp"

#include <stdexcept>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace test {
namespace {

using Key = std::shared_ptr<EVP_PKEY>;
using Certificate = std::shared_ptr<X509>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

template <typename T>
T require(T made) {
    if (!made) throw std::runtime_error("OpenSSL refuses what a test asks of it");
    return made;
}

Key new_key() {
    return {require(EVP_EC_gen("P-256")), EVP_PKEY_free};
}

std::string taken_from(const Bio& bio) {
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &text);
    return {text, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
    const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
    require(PEM_write_bio_X509(bio.get(), certificate));
    return taken_from(bio);
}

std::string pem_of(EVP_PKEY* key, const EVP_CIPHER* cipher = nullptr, const std::string& passphrase = {}) {
    const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
    require(PEM_write_bio_PKCS8PrivateKey(bio.get(), key, cipher, passphrase.data(),
                                          static_cast<int>(passphrase.size()), nullptr, nullptr));
    return taken_from(bio);
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
    X509_EXTENSION* extension = require(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

/// issuer: null = it signs itself, with its own key.
Certificate make(const Wish& wish, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
    Certificate made(require(X509_new()), X509_free);
    X509* certificate = made.get();
    std::uint64_t serial = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial - 1);
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), wish.from.count());
    X509_gmtime_adj(X509_getm_notAfter(certificate), wish.until.count());
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(wish.common_name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : name);
    add_extension(certificate, issuer ? issuer : certificate, NID_basic_constraints,
                  issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
    // By these a verifier tells this authority from another of the same name.
    add_extension(certificate, issuer ? issuer : certificate, NID_subject_key_identifier, "hash");
    if (issuer) add_extension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
    if (!wish.names.empty())
        add_extension(certificate, issuer ? issuer : certificate, NID_subject_alt_name, wish.names);
    require(X509_sign(certificate, issuer_key, EVP_sha256()));
    return made;
}

}  // namespace

CertificateAuthority::CertificateAuthority() : key_(new_key()) {
    own_ = make({"", std::chrono::hours(-24), std::chrono::hours(24), "noren test CA"}, key_.get(), nullptr,
                key_.get());
    certificate_ = pem_of(own_.get());
}

CertificateAuthority::~CertificateAuthority() = default;

Certified CertificateAuthority::issue(const Wish& wish) const {
    const Key key = new_key();
    const Certificate made = make(wish, key.get(), own_.get(), key_.get());
    return {pem_of(made.get()), pem_of(key.get())};
}

std::string with_passphrase(const std::string& key) {
    const Bio bio(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())), BIO_free);
    const Key read(require(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr)), EVP_PKEY_free);
    return pem_of(read.get(), EVP_aes_128_cbc(), "secret");
}

}  // namespace test
