#pragma once
// A CA and what it has signed, as files in a directory of the test's own, for a noren to be configured with.

#include <filesystem>
#include <string>

#include "config/config.hpp"
#include "tests/support/certificates.hpp"
#include "tests/support/temp_dir.hpp"

namespace test {

class PemFiles {
  public:
    PemFiles() {
        noren::test::write_file(dir_ / "ca.crt", ca_.certificate());
        issue("tls");
    }

    /// Makes NAME.crt and NAME.key, each by a rename.
    Certified issue(const std::string& name, const Wish& wish = {}) const {
        Certified made = ca_.issue(wish);
        put(name, made);
        return made;
    }
    void put(const std::string& name, const Certified& pair) const {
        put_file(name + ".crt", pair.certificate);
        put_file(name + ".key", pair.key);
    }
    std::string path(const std::string& name) const { return (dir_ / name).string(); }
    const std::string& ca() const { return ca_.certificate(); }

    /// TLS towards the clients.
    void serve(noren::config::Config& config, const std::string& name = "tls") const {
        config.tls.certificate = path(name + ".crt");
        config.tls.key = path(name + ".key");
    }
    /// An engine that shows a certificate of this CA is trusted.
    void trust(noren::config::Config& config) const { config.upstream.tls.ca = path("ca.crt"); }

  private:
    void put_file(const std::string& name, const std::string& text) const {
        noren::test::write_file(dir_ / (name + ".new"), text);
        std::filesystem::rename(dir_ / (name + ".new"), dir_ / name);
    }

    CertificateAuthority ca_;
    noren::test::TempDir dir_;
};

}  // namespace test
