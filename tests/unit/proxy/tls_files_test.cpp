#include "proxy/tls_files.hpp"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/certificates.hpp"
#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

using ::test::CertificateAuthority;
using ::test::Certified;
using test::TempDir;
using test::write_file;

/// What `noren check` prints for this text.
std::vector<std::string> told(const TempDir& dir, const std::string& yaml) {
    const std::string file = (dir / "noren.yaml").string();
    write_file(file, yaml);
    config::Sources sources;
    sources.flags.config = file;
    config::Resolved loaded = config::load(sources);
    check_tls_files(loaded);
    CHECK(loaded.ok() == loaded.mistakes.empty());
    std::vector<std::string> lines;
    for (const config::Mistake& mistake : loaded.mistakes)
        lines.push_back(mistake.to_string().substr(file.size()));
    return lines;
}

struct Files {
    Files() {
        write_file(dir / "ca.crt", ca.certificate());
        write_file(dir / "tls.crt", own.certificate);
        write_file(dir / "tls.key", own.key);
        write_file(dir / "other.key", ca.issue().key);
    }
    std::string path(const std::string& name) const { return (dir / name).string(); }
    std::string quoted(const std::string& name) const { return '"' + path(name) + '"'; }

    TempDir dir;
    CertificateAuthority ca;
    Certified own = ca.issue();
};

}  // namespace

TEST_CASE("good TLS files are good, and what nobody needs is not read") {
    const Files files;
    CHECK(told(files.dir, "").empty());
    CHECK(told(files.dir, "tls: {certificate: " + files.path("tls.crt") + ", key: " + files.path("tls.key") +
                              ", client_ca: " + files.path("ca.crt") + "}\n")
              .empty());
    CHECK(told(files.dir, "upstream: {url: 'https://engine', tls: {ca: " + files.path("ca.crt") +
                              ", certificate: " + files.path("tls.crt") + ", key: " + files.path("tls.key") +
                              "}}\n")
              .empty());
    CHECK(told(files.dir, "upstream: {url: 'https://engine'}\n").empty());
}

TEST_CASE("bad TLS files are told with line, key, found and expected, all at once") {
    const Files files;
    CHECK(told(files.dir,
               "tls:\n  certificate: " + files.path("none.crt") + "\n  key: " + files.path("none.key") +
                   "\nupstream:\n  url: https://engine\n  tls:\n    ca: " + files.path("") + "\n") ==
          std::vector<std::string>{
              ":2: tls.certificate: found " + files.quoted("none.crt") +
                  ": no such file, expected a readable file",
              ":3: tls.key: found " + files.quoted("none.key") + ": no such file, expected a readable file",
              ":7: upstream.tls.ca: found " + files.quoted("") + ": a directory, expected a readable file"});
    CHECK(told(files.dir, "tls:\n  certificate: " + files.path("tls.crt") +
                              "\n  key: " + files.path("other.key") + "\n") ==
          std::vector<std::string>{":3: tls.key: found " + files.quoted("other.key") +
                                   ": the key of another certificate, expected the private key of the "
                                   "certificate, as PEM without a passphrase"});
    CHECK(told(files.dir, "tls: {certificate: " + files.path("tls.key") + ", key: " + files.path("tls.key") +
                              ", client_ca: " + files.path("tls.key") + "}\n") ==
          std::vector<std::string>{":1: tls.certificate: found " + files.quoted("tls.key") +
                                       ": no certificate, expected a PEM certificate, followed by its chain",
                                   ":1: tls.client_ca: found " + files.quoted("tls.key") +
                                       ": no certificate, expected PEM certificates of the CAs to trust"});
    CHECK(told(files.dir, "tls: {certificate: /none, key: " + files.path("tls.crt") + "}\n").size() == 2);
    write_file(files.dir / "big.crt", std::string(1024 * 1024 + 1, '\n'));
    CHECK(told(files.dir,
               "tls: {certificate: " + files.path("big.crt") + ", key: " + files.path("tls.key") + "}\n") ==
          std::vector<std::string>{":1: tls.certificate: found " + files.quoted("big.crt") +
                                   ": more than 1MiB, expected PEM"});
}

TEST_CASE("a config with other mistakes is not asked about its files") {
    const Files files;
    CHECK(told(files.dir, "workers: many\ntls: {certificate: /none, key: /none}\n").size() == 1);
}

TEST_CASE("the fingerprint follows the content, and is not it") {
    const Files files;
    config::Config config;
    const std::string nothing = TlsFiles::read(config).fingerprint();
    config.tls.certificate = files.path("tls.crt");
    config.tls.key = files.path("tls.key");
    const std::string before = TlsFiles::read(config).fingerprint();
    CHECK(before != nothing);
    CHECK(before.size() == 32);
    write_file(files.dir / "tls.crt", files.own.certificate);
    CHECK(TlsFiles::read(config).fingerprint() == before);
    write_file(files.dir / "tls.crt", files.own.certificate + "\n");
    CHECK(TlsFiles::read(config).fingerprint() != before);
    std::filesystem::remove(files.dir / "tls.crt");
    const std::string gone = TlsFiles::read(config).fingerprint();
    CHECK(gone != before);
    config.tls.certificate = files.path("tls.key");  // swapped
    config.tls.key = files.path("tls.crt");
    CHECK(TlsFiles::read(config).fingerprint() != gone);
}

}  // namespace noren::proxy
