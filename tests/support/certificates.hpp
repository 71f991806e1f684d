#pragma once
// Certificates for tests: made when a test runs, so that no private key lies in the repository and none ever
// expires there.

#include <chrono>
#include <memory>
#include <string>

struct evp_pkey_st;
struct x509_st;

namespace test {

/// What a certificate is to say.
struct Wish {
    std::string names = "DNS:localhost,IP:127.0.0.1";  ///< as openssl's subjectAltName
    std::chrono::seconds from{-3600};                  ///< from now
    std::chrono::seconds until{3600};
    std::string common_name = "noren test";
};

/// PEM texts.
struct Certified {
    std::string certificate;
    std::string key;
};

/// A certificate authority of its own.
class CertificateAuthority {
  public:
    CertificateAuthority();
    ~CertificateAuthority();
    CertificateAuthority(const CertificateAuthority&) = delete;
    CertificateAuthority& operator=(const CertificateAuthority&) = delete;

    Certified issue(const Wish& wish = {}) const;
    /// Of the authority itself, PEM.
    const std::string& certificate() const { return certificate_; }

  private:
    std::shared_ptr<evp_pkey_st> key_;
    std::shared_ptr<x509_st> own_;
    std::string certificate_;
};

/// The same key, locked with a passphrase.
std::string with_passphrase(const std::string& key);

}  // namespace test
