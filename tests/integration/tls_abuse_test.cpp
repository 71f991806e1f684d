// Handshakes that go wrong in every way cost nothing that lasts, and hold nobody else up.

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <openssl/ssl.h>

#include "tests/integration/scene.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/noren_under_test.hpp"
#include "tests/support/pem_files.hpp"
#include "tests/support/tls_peer.hpp"

namespace {

using namespace std::chrono_literals;
using test::Listener;
using test::NorenUnderTest;
using test::Peer;
using test::PemFiles;
using test::TlsPeer;

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// A client whose bytes pass through the test's hands, so that it can stop after any of them.
class Stutterer {
  public:
    Stutterer(Peer peer, std::size_t most)
        : peer_(std::move(peer)),
          left_(most),
          context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
          session_(SSL_new(context_.get()), SSL_free) {
        SSL_set_bio(session_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_connect_state(session_.get());
    }

    /// Shakes hands and asks, until it has said so many bytes. garble: the last of them is a wrong one.
    void speak(const std::string& request, bool garble) {
        for (bool asked = false; !asked;) {
            if (SSL_do_handshake(session_.get()) == 1) {
                SSL_write(session_.get(), request.data(), static_cast<int>(request.size()));
                asked = true;
            }
            say(garble);
            if (asked || left_ == 0) return;
            const std::string heard = peer_.receive();
            if (heard.empty()) return;
            BIO_write(SSL_get_rbio(session_.get()), heard.data(), static_cast<int>(heard.size()));
        }
    }
    Peer& peer() { return peer_; }

  private:
    void say(bool garble) {
        std::string bytes(BIO_ctrl_pending(SSL_get_wbio(session_.get())), '\0');
        if (bytes.empty()) return;
        BIO_read(SSL_get_wbio(session_.get()), bytes.data(), static_cast<int>(bytes.size()));
        bytes.resize(std::min(bytes.size(), left_));
        left_ -= bytes.size();
        if (garble && left_ == 0) bytes.back() = static_cast<char>(bytes.back() ^ 0x20);
        peer_.send(bytes);
    }

    Peer peer_;
    std::size_t left_;
    std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
    std::unique_ptr<SSL, void (*)(SSL*)> session_;
};

}  // namespace

TEST_CASE(
    "1,000 handshakes and requests broken off at any byte end with every gauge at 0 and no descriptor lost") {
    const PemFiles files;
    Listener engine;  // accepts, and never says anything
    NorenUnderTest noren(engine.url(), [&](auto& config) {
        files.serve(config);
        config.workers = 2;
        config.log.access = "off";
    });
    const std::string request = test::post_request("/v1/chat/completions", "{\"stream\":true}");
    std::size_t before = 0;
    std::mt19937 random(11);
    std::vector<Peer> open;
    for (int i = 0; i < 1000; ++i) {
        if (i == 100) {  // by now every worker has what it needs
            open.clear();
            REQUIRE(noren.reaches("noren_client_connections", 0));
            before = open_descriptors();
        }
        Stutterer client(Peer::connect(noren.port()), 1 + random() % 900);
        client.speak(request, random() % 4 == 0);
        if (random() % 2 == 0) client.peer().reset();
        open.push_back(std::move(client.peer()));
        if (open.size() >= 16) open.erase(open.begin() + static_cast<std::ptrdiff_t>(random() % open.size()));
    }
    // Whether noren sees the garbled byte or the reset behind it first is chance; here it is the byte.
    Peer garbler = Peer::connect(noren.port());
    garbler.send({"\x16\x03\x01\x00\x05hello", 10});
    garbler.receive_all();
    garbler.close();
    open.clear();
    CHECK(noren.reaches("noren_client_connections", 0));
    test::expect_nothing_held(noren);
    double handshakes = 0;
    for (const char* result : {"ok", "plain_text", "closed", "certificate", "protocol", "timeout"})
        handshakes += noren.metric("noren_tls_handshakes_total{result=\"" + std::string(result) + "\"}");
    CHECK(handshakes == 1001);
    CHECK(noren.metric("noren_tls_handshakes_total{result=\"ok\"}") > 0);
    CHECK(noren.metric("noren_tls_handshakes_total{result=\"closed\"}") > 0);
    CHECK(noren.metric("noren_tls_handshakes_total{result=\"protocol\"}") > 0);
    CHECK(test::eventually(
        [&] { return open_descriptors() <= before; }));  // the scrape above may still be open
    TlsPeer last = TlsPeer::client(Peer::connect(noren.port()), {.ca = files.ca()});
    CHECK(last.problem().empty());
}

TEST_CASE("plain HTTP on the TLS port is told so") {
    const PemFiles files;
    Listener engine;
    NorenUnderTest noren(engine.url(), [&](auto& config) { files.serve(config); });
    for (const char* method : {"GET", "POST", "DELETE", "OPTIONS"}) {
        Peer client = Peer::connect(noren.port());
        client.send(std::string(method) + " /v1/models HTTP/1.1\r\nHost: t\r\n\r\n");
        const std::string answer = client.receive_all();
        CHECK(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"));
        CHECK(answer.find("this port speaks HTTPS") != std::string::npos);
        CHECK(answer.find("\r\nx-noren-reason: bad_request\r\n") != std::string::npos);
        CHECK(answer.find("\r\nConnection: close\r\n") != std::string::npos);
    }
    CHECK(noren.reaches("noren_tls_handshakes_total{result=\"plain_text\"}", 4));
    CHECK(noren.reaches("noren_failures_total{reason=\"bad_request\"}", 4));
    CHECK(noren.reaches("noren_client_connections", 0));
}

TEST_CASE("a slow handshake is given up after timeouts.head, and nobody waits for it") {
    const PemFiles files;
    Listener engine;
    NorenUnderTest noren(engine.url(), [&](auto& config) {
        files.serve(config);
        config.timeouts.head = 300ms;
    });
    std::vector<Peer> slow;
    for (int i = 0; i < 50; ++i) {
        slow.push_back(Peer::connect(noren.port()));
        if (i % 2 == 0) slow.back().send(std::string("\x16\x03\x01\x02\x00\x01\x00", 7));
    }
    REQUIRE(noren.reaches("noren_client_connections", 50));
    TlsPeer quick = TlsPeer::client(Peer::connect(noren.port()), {.ca = files.ca()});
    quick.send("TRACE / HTTP/1.1\r\nHost: t\r\n\r\n");
    CHECK(quick.receive_until("\r\n\r\n").starts_with("HTTP/1.1 405 "));
    for (Peer& peer : slow)
        CHECK(peer.receive_all().empty());
    CHECK(noren.reaches("noren_tls_handshakes_total{result=\"timeout\"}", 50));
    CHECK(noren.reaches("noren_tls_handshakes_total{result=\"ok\"}", 1));
}
