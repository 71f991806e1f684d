#include "proxy/net/tls_context.hpp"

#include <chrono>
#include <string>

#include <catch2/catch.hpp>

#include "tests/support/certificates.hpp"

namespace noren::proxy::net {
namespace {

using ::test::CertificateAuthority;
using ::test::Certified;

/// "part: found", for the one problem that is expected.
std::string only(const TlsProblems& problems) {
    REQUIRE(problems.size() == 1);
    constexpr const char* k_parts[] = {"certificate", "key", "ca"};
    return std::string(k_parts[static_cast<int>(problems[0].part)]) + ": " + problems[0].found;
}

std::string server_problem(const TlsContext::Server& material) {
    TlsProblems problems;
    CHECK(TlsContext::server(material, problems) == nullptr);
    return only(problems);
}

std::string client_problem(const TlsContext::Client& material) {
    TlsProblems problems;
    CHECK(TlsContext::client(material, problems) == nullptr);
    return only(problems);
}

}  // namespace

TEST_CASE("a certificate and its key make a context, with or without a chain") {
    const CertificateAuthority ca;
    const Certified own = ca.issue({.until = std::chrono::hours(5)});
    for (const std::string& chain :
         {std::string(), ca.certificate(), "some words in between\n" + ca.certificate()}) {
        TlsProblems problems;
        const auto context = TlsContext::server({own.certificate + chain, own.key, "", false}, problems);
        REQUIRE(context);
        CHECK(problems.empty());
        CHECK(context->is_server());
        const auto left = *context->expiry() - std::chrono::system_clock::now();
        CHECK(left > std::chrono::minutes(299));
        CHECK(left <= std::chrono::minutes(300));
    }
    TlsProblems problems;
    const auto both = own.key + own.certificate;  // one file for both is common
    CHECK(TlsContext::server({both, both, ca.certificate(), true}, problems));
}

TEST_CASE("what is wrong with a certificate, its key or the CAs is told") {
    const CertificateAuthority ca;
    const Certified own = ca.issue();
    const Certified other = ca.issue();
    CHECK(server_problem({"", own.key, "", false}) == "certificate: no certificate");
    CHECK(server_problem({"no PEM\n", own.key, "", false}) == "certificate: no certificate");
    CHECK(server_problem({own.key, own.key, "", false}) == "certificate: no certificate");
    CHECK(server_problem({own.certificate, "", "", false}) == "key: no private key");
    CHECK(server_problem({own.certificate, own.certificate, "", false}) == "key: no private key");
    CHECK(server_problem({own.certificate, other.key, "", false}) == "key: the key of another certificate");
    CHECK(server_problem({own.certificate, ::test::with_passphrase(own.key), "", false}) ==
          "key: a key with a passphrase");
    CHECK(server_problem({own.certificate, own.key, "no CA", false}) == "ca: no certificate");
    CHECK(client_problem({"engine", "no CA", "", "", true}) == "ca: no certificate");
    CHECK(client_problem({"engine", "", own.certificate, other.key, true}) ==
          "key: the key of another certificate");
    TlsProblems problems;
    CHECK(TlsContext::server({"", "", "no CA", false}, problems) == nullptr);
    CHECK(problems.size() == 3);  // all at once
}

TEST_CASE("a chain that was cut while it was being written is never taken for a shorter one") {
    const CertificateAuthority ca;
    const Certified own = ca.issue();
    const std::string whole = own.certificate + ca.certificate();
    TlsProblems problems;
    for (std::size_t size = 0; size + 1 < whole.size(); size += 3) {
        problems.clear();
        const auto context = TlsContext::server({whole.substr(0, size), own.key, "", false}, problems);
        // Where the cut is between two certificates nobody can tell; there the reload waits for a second
        // look.
        const bool between =
            size >= own.certificate.size() - 1 &&
            size < own.certificate.size() + std::string("-----BEGIN CERTIFICATE-----\n").size();
        INFO(size);
        if (!between) CHECK(context == nullptr);
    }
}

TEST_CASE("towards the engine: a name is for SNI, an address is not") {
    const auto sni = [](const std::string& name) {
        TlsProblems problems;
        const auto context = TlsContext::client({name, "", "", "", true}, problems);
        REQUIRE(context);
        CHECK_FALSE(context->is_server());
        CHECK_FALSE(context->expiry());
        return context->sni();
    };
    CHECK(sni("engine.ns.svc") == "engine.ns.svc");
    CHECK(sni("engine.ns.svc.") == "engine.ns.svc");
    CHECK(sni("127.0.0.1").empty());
    CHECK(sni("::1").empty());
    CHECK(sni("fe80::1%eth0").empty());
}

}  // namespace noren::proxy::net
