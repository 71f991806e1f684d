#include "proxy/tls_reload.hpp"

#include <filesystem>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "tests/support/certificates.hpp"
#include "tests/support/loop.hpp"
#include "tests/support/temp_dir.hpp"

namespace noren::proxy {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::test::CertificateAuthority;
using ::test::Certified;
using test::run_until;
using test::TempDir;
using test::write_file;

/// A secret volume as the kubelet lays it out: tls.crt -> ..data/tls.crt, ..data -> a dated folder.
class SecretVolume {
  public:
    explicit SecretVolume(const Certified& first) {
        publish(first);
        fs::create_symlink("..data/tls.crt", dir_ / "tls.crt");
        fs::create_symlink("..data/tls.key", dir_ / "tls.key");
    }
    void publish(const Certified& next) {
        const std::string folder = "..2026_" + std::to_string(++count_);
        fs::create_directory(dir_ / folder);
        write_file(dir_ / (folder + "/tls.crt"), next.certificate);
        write_file(dir_ / (folder + "/tls.key"), next.key);
        fs::create_symlink(folder, dir_ / "..data_tmp");
        fs::rename(dir_ / "..data_tmp", dir_ / "..data");
        if (count_ > 1) fs::remove_all(dir_ / ("..2026_" + std::to_string(count_ - 1)));
    }
    std::string path(const std::string& name) const { return (dir_ / name).string(); }
    const TempDir& dir() const { return dir_; }

  private:
    TempDir dir_;
    int count_ = 0;
};

config::Log silent() {
    config::Log log;
    log.level = "off";
    log.access = "off";
    return log;
}

struct Renewal {
    Renewal() : log(silent()), telemetry({}) {
        config.tls.certificate = volume.path("tls.crt");
        config.tls.key = volume.path("tls.key");
        reload.emplace(io, config, telemetry, log, [this] { ++changes; }, milliseconds(5));
    }
    double reloads(const std::string& result) const {
        const std::string text = telemetry.exposition();
        const std::string series = "noren_tls_certificate_reloads_total{result=\"" + result + "\"} ";
        return std::stod(text.substr(text.find(series) + series.size()));
    }
    Status status() const {
        Status status;
        reload->describe(status);
        return status;
    }
    bool comes(const std::function<bool()>& done) { return run_until(io, done); }
    void looks(int count) { io.run_for(milliseconds(5 * count + 20)); }

    CertificateAuthority ca;
    SecretVolume volume{ca.issue()};
    config::Config config;
    asio::io_context io;
    Log log;
    metrics::Telemetry telemetry;
    std::optional<TlsReload> reload;
    int changes = 0;
};

}  // namespace

TEST_CASE("a renewed secret is taken over, an unchanged one is left alone") {
    Renewal renewal;
    const auto first = renewal.reload->contexts().downstream;
    REQUIRE(first);
    renewal.reload->start();
    renewal.looks(5);
    CHECK(renewal.changes == 0);
    CHECK(renewal.reload->contexts().downstream == first);

    const Certified next = renewal.ca.issue({.until = std::chrono::hours(48)});
    renewal.volume.publish(next);
    REQUIRE(renewal.comes([&] { return renewal.changes == 1; }));
    const auto second = renewal.reload->contexts().downstream;
    CHECK(second != first);
    CHECK(*second->expiry() > *first->expiry());
    CHECK(renewal.reloads("ok") == 1);
    CHECK(renewal.reloads("error") == 0);
    CHECK(renewal.status().tls);
    CHECK(renewal.status().tls_problem.empty());
    CHECK(renewal.status().tls_certificate_expires.size() == 20);

    renewal.volume.publish(next);  // the same again, elsewhere
    renewal.looks(5);
    CHECK(renewal.changes == 1);
}

TEST_CASE("a pair that does not match, or is broken, changes nothing and is told once") {
    Renewal renewal;
    const auto first = renewal.reload->contexts().downstream;
    const Certified other = renewal.ca.issue();
    renewal.reload->start();
    SECTION("mismatch") {
        renewal.volume.publish({other.certificate, renewal.ca.issue().key});
    }
    SECTION("half a file") {
        renewal.volume.publish({other.certificate.substr(0, 300), other.key});
    }
    SECTION("empty") {
        renewal.volume.publish({"", ""});
    }
    REQUIRE(renewal.comes([&] { return renewal.reloads("error") == 1; }));
    renewal.looks(5);
    CHECK(renewal.reloads("error") == 1);
    CHECK(renewal.reload->contexts().downstream == first);
    CHECK(renewal.changes == 0);
    CHECK(renewal.status().tls_problem.starts_with("tls."));
    renewal.volume.publish(other);  // mended
    REQUIRE(renewal.comes([&] { return renewal.changes == 1; }));
    CHECK(renewal.reload->contexts().downstream != first);
    CHECK(renewal.status().tls_problem.empty());
}

TEST_CASE("files that go away keep the certificate in force, and their coming back is no news") {
    Renewal renewal;
    const auto first = renewal.reload->contexts().downstream;
    renewal.reload->start();
    fs::rename(renewal.volume.dir() / "..data", renewal.volume.dir() / "..away");
    REQUIRE(renewal.comes([&] { return renewal.reloads("error") == 1; }));
    CHECK(renewal.reload->contexts().downstream == first);
    CHECK_FALSE(renewal.status().tls_problem.empty());
    fs::rename(renewal.volume.dir() / "..away", renewal.volume.dir() / "..data");
    REQUIRE(renewal.comes([&] { return renewal.status().tls_problem.empty(); }));
    CHECK(renewal.changes == 0);
}

TEST_CASE("a pair between the writing of its two files is waited for") {
    Renewal renewal;
    const Certified next = renewal.ca.issue();
    // Not started: each look is the test's, by way of set(), which believes at once; so the waiting is seen
    // through the timer only.
    renewal.reload->start();
    write_file(renewal.volume.path("tls.crt"), next.certificate);
    renewal.io.run_one();  // one look falls into the gap
    write_file(renewal.volume.path("tls.key"), next.key);
    REQUIRE(renewal.comes([&] { return renewal.changes == 1; }));
    CHECK(renewal.reloads("error") == 0);
}

TEST_CASE("a reload of the config reads the files at once, and turns TLS on and off") {
    Renewal renewal;
    const auto first = renewal.reload->contexts().downstream;
    renewal.reload->set(renewal.config);
    CHECK(renewal.reload->contexts().downstream == first);
    CHECK(renewal.reloads("ok") == 0);
    renewal.volume.publish(renewal.ca.issue());
    renewal.reload->set(renewal.config);
    CHECK(renewal.reload->contexts().downstream != first);
    CHECK(renewal.reloads("ok") == 1);
    CHECK(renewal.changes == 0);  // who calls set() knows

    renewal.reload->set(config::Config{});
    CHECK_FALSE(renewal.reload->contexts().downstream);
    CHECK_FALSE(renewal.status().tls);
    renewal.reload->set(renewal.config);
    CHECK(renewal.reload->contexts().downstream);
}

TEST_CASE("an engine that is not verified is told, and bad files at the start end it") {
    Renewal renewal;
    renewal.config.upstream.url = "https://engine";
    CHECK(renewal.status().engine_tls == "none");
    renewal.reload->set(renewal.config);
    CHECK(renewal.status().engine_tls == "none");  // the url needs a restart; nothing else has changed
    renewal.config.upstream.tls.verify = "off";
    renewal.reload->set(renewal.config);
    CHECK(renewal.status().engine_tls == "unverified");

    renewal.config.tls.key = "/none";
    CHECK_THROWS_WITH(TlsReload(renewal.io, renewal.config, renewal.telemetry, renewal.log, [] {}),
                      "tls.key: found \"/none\": no such file, expected a readable file");
}

}  // namespace noren::proxy
