// Two sockets of ours that speak TLS with each other, with every byte accounted for.

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <catch2/catch.hpp>

#include "proxy/net/outbox.hpp"
#include "proxy/net/socket.hpp"
#include "proxy/net/task.hpp"
#include "tests/support/certificates.hpp"

namespace noren::proxy::net {
namespace {

using ::test::CertificateAuthority;
using ::test::Certified;
using ::test::Wish;

using Context = std::shared_ptr<const TlsContext>;

/// Turns until done, for 20 s at most.
template <typename Done>
bool run_until(Loop& loop, Done&& done) {
    const TimePoint give_up = Clock::now() + std::chrono::seconds(20);
    while (!done()) {
        if (Clock::now() > give_up) return false;
        loop.turn(Clock::now() + std::chrono::milliseconds(10));
    }
    return true;
}

Context server_context(const Certified& own, const std::string& client_ca = {}) {
    TlsProblems problems;
    auto context = TlsContext::server({own.certificate, own.key, client_ca, false}, problems);
    REQUIRE(context);
    return context;
}

Context client_context(const std::string& ca, const Certified& own = {},
                       const std::string& name = "localhost", bool verify = true) {
    TlsProblems problems;
    auto context = TlsContext::client({name, ca, own.certificate, own.key, verify}, problems);
    REQUIRE(context);
    return context;
}

/// A server and a client on the two ends of a socket pair; small buffers, so that writes are partial.
struct Pair {
    explicit Pair(int buffer = 4096) : wakeup(loop) {
        std::array<int, 2> fds{};
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
        for (const int fd : fds)
            ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
        server.emplace(loop, Descriptor(fds[0]));
        client.emplace(loop, Descriptor(fds[1]));
    }

    void begin(const TlsContext& server_side, const TlsContext& client_side) {
        server->start_tls(server_side);
        client->start_tls(client_side);
    }
    /// Both handshakes, as far as they go.
    std::pair<Socket::Handshake, Socket::Handshake> shake_hands() {
        Socket::Handshake s{};
        Socket::Handshake c{};
        run_until(loop, [&] {
            if (s == Socket::Handshake::running) s = server->handshake();
            if (c == Socket::Handshake::running) c = client->handshake();
            return s != Socket::Handshake::running && c != Socket::Handshake::running;
        });
        return {s, c};
    }
    /// Reads until the status is anything but would_block and ok.
    IoStatus read_out(Socket& socket, std::string& into, std::size_t piece = 1000) {
        std::string buffer(piece, '\0');
        IoResult result;
        run_until(loop, [&] {
            do {
                result = socket.read(buffer);
                into.append(buffer.data(), result.bytes);
            } while (result.status == IoStatus::ok);
            return result.status != IoStatus::would_block;
        });
        return result.status;
    }

    Loop loop;
    Wakeup wakeup;
    std::optional<Socket> server, client;
};

struct Secure : Pair {
    explicit Secure(int buffer = 4096) : Pair(buffer) {
        const CertificateAuthority ca;
        begin(*server_context(ca.issue()), *client_context(ca.certificate()));
        REQUIRE(shake_hands() == std::pair(Socket::Handshake::done, Socket::Handshake::done));
    }
};

std::string noise(std::mt19937& random, std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text)
        c = static_cast<char>(random());
    return text;
}

}  // namespace

TEST_CASE("what goes in on one side comes out on the other, in any pieces") {
    Secure pair;
    std::mt19937 random(5);
    for (int round = 0; round < 12; ++round) {
        Socket& from = round % 2 == 0 ? *pair.server : *pair.client;
        Socket& to = round % 2 == 0 ? *pair.client : *pair.server;
        Outbox out(from);
        const std::string first = noise(random, random() % 40'000);
        const std::string second = noise(random, random() % 40'000);
        std::string buffer(1 + random() % 70'000, '\0');
        std::string got;
        REQUIRE(out.send(first, second));
        REQUIRE(out.send(first));
        const std::size_t wanted = 2 * first.size() + second.size();
        REQUIRE(run_until(pair.loop, [&] {
            REQUIRE(out.flush());
            IoResult read;
            while ((read = to.read(buffer)).status == IoStatus::ok)
                got.append(buffer.data(), read.bytes);
            REQUIRE(read.status == IoStatus::would_block);
            return got.size() >= wanted;
        }));
        CHECK(out.empty());
        CHECK(got == first + second + first);
    }
}

TEST_CASE("decrypted bytes are never left sleeping, however small the reader's buffer") {
    Secure pair(1 << 20);
    std::mt19937 random(6);
    for (const std::size_t piece : {1u, 7u, 16'384u, 65'536u}) {
        const std::string text = noise(random, 50'000);
        Outbox out(*pair.server);
        REQUIRE(out.send(text));
        REQUIRE(out.empty());
        // One event at most: after it, reading until would_block has to bring everything.
        std::string buffer(piece, '\0');
        std::string got;
        const auto drain = [&] {
            IoResult read;
            while ((read = pair.client->read(buffer)).status == IoStatus::ok)
                got.append(buffer.data(), read.bytes);
            CHECK(read.status == IoStatus::would_block);
        };
        drain();
        if (got.size() < text.size()) {
            pair.loop.turn(Clock::now() + std::chrono::seconds(20));
            drain();
        }
        CHECK(got == text);
    }
}

TEST_CASE("the waker is told when a record has come, and when there is room again") {
    Secure pair;
    bool woken = false;
    struct Sleeper {
        static Task<> run(Wakeup& wakeup, bool& flag) {
            for (int i = 0; i < 2; ++i) {
                co_await wakeup.wait(k_never);
                flag = true;
            }
        }
    };
    const Task<> sleeper = Sleeper::run(pair.wakeup, woken);
    sleeper.start();
    pair.client->wake(pair.wakeup.waker());
    std::array<char, 100> buffer{};
    CHECK(pair.client->read(buffer).status == IoStatus::would_block);
    CHECK(pair.server->write("hello").bytes == 5);
    REQUIRE(run_until(pair.loop, [&] { return woken; }));
    CHECK(pair.client->read(buffer).bytes == 5);
    pair.client->wake_nobody();
    woken = false;

    pair.server->wake(pair.wakeup.waker());
    Outbox out(*pair.server);
    REQUIRE(out.send(std::string(200'000, 'x')));
    REQUIRE_FALSE(out.empty());
    std::string got;
    REQUIRE(run_until(pair.loop, [&] {
        std::string more(5000, '\0');
        const IoResult read = pair.client->read(more);
        got.append(more.data(), read.bytes);
        return woken;
    }));
}

TEST_CASE("an end with close_notify is an end; one without is a break") {
    std::string got;
    SECTION("shutdown_write: the other direction goes on") {
        Secure pair;
        CHECK(pair.server->write("last words").bytes == 10);
        pair.server->shutdown_write();
        CHECK(pair.read_out(*pair.client, got) == IoStatus::closed);
        CHECK(got == "last words");
        CHECK(pair.client->peer_closed());
        CHECK(pair.client->write("still here").bytes == 10);
        std::array<char, 100> buffer{};
        IoResult read;
        REQUIRE(
            run_until(pair.loop, [&] { return (read = pair.server->read(buffer)).status == IoStatus::ok; }));
        CHECK(std::string(buffer.data(), read.bytes) == "still here");
    }
    SECTION("close") {
        Secure pair;
        CHECK(pair.server->write("last words").bytes == 10);
        pair.server->close();
        CHECK(pair.read_out(*pair.client, got) == IoStatus::closed);
        CHECK(got == "last words");
    }
    SECTION("a bare FIN") {
        Secure pair;
        CHECK(pair.server->write("last wor").bytes == 8);
        pair.server->end_tls();
        pair.server->shutdown_write();
        CHECK(pair.read_out(*pair.client, got) == IoStatus::broken);
        CHECK(got == "last wor");
        CHECK(pair.client->tls_failure().fault == TlsFault::none);
    }
    SECTION("reset") {
        Secure pair;
        pair.server->reset();
        CHECK(pair.read_out(*pair.client, got) == IoStatus::broken);
    }
    SECTION("bytes that are no TLS") {
        Secure pair;
        pair.server->end_tls();
        CHECK(pair.server->write("HTTP/1.1 200 OK\r\n\r\n").bytes == 19);
        CHECK(pair.read_out(*pair.client, got) == IoStatus::broken);
        CHECK(got.empty());
        CHECK(pair.client->tls_failure().fault == TlsFault::protocol);
    }
}

TEST_CASE("the end is said even when the socket is full at that moment") {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        Secure pair;
        Outbox out(*pair.server);
        std::string sent, got;
        const std::string piece(1 + random() % 3000, 'p');
        while (out.empty()) {
            sent += piece;
            REQUIRE(out.send(piece));
        }
        REQUIRE(run_until(pair.loop, [&] {  // the reader makes just so much room that the last record fits
            std::string buffer(500, '\0');
            const IoResult read = pair.client->read(buffer);
            got.append(buffer.data(), read.bytes);
            REQUIRE(out.flush());
            return out.empty();
        }));
        pair.server->shutdown_write();
        CHECK(pair.read_out(*pair.client, got) == IoStatus::closed);
        CHECK(got == sent);
    }
}

TEST_CASE("writing to a peer that is gone is told, not a signal that ends the process") {
    Secure pair;
    pair.client->reset();
    IoResult result;
    for (int i = 0; i < 3 && result.status == IoStatus::ok; ++i)
        result = pair.server->write("anybody?");
    CHECK(result.status == IoStatus::broken);
    CHECK(result.error != EPIPE);  // which would say: after an orderly end
}

TEST_CASE("an idle connection is disturbed by an end or by bytes, not by TLS's own messages") {
    Secure pair(1 << 20);
    CHECK_FALSE(pair.client->disturbed(true));  // though session tickets are waiting
    CHECK_FALSE(pair.client->disturbed(true));
    SECTION("bytes") {
        CHECK(pair.server->write("x").bytes == 1);
        CHECK(pair.client->disturbed(true));
    }
    SECTION("an end") {
        pair.server->shutdown_write();
        CHECK(pair.client->disturbed(true));
    }
    SECTION("a bare end") {
        pair.server->reset();
        CHECK(pair.client->disturbed(true));
    }
    SECTION("half a record") {
        pair.server->end_tls();
        CHECK(pair.server->write("\x17\x03\x03").bytes == 3);
        CHECK(pair.client->disturbed(true));
    }
}

TEST_CASE("which check of the engine's certificate did not pass is told") {
    const CertificateAuthority ca;
    const CertificateAuthority stranger;
    struct Case {
        Wish wish;
        std::string trusted;
        std::string name;
        std::string_view text;  ///< empty = accepted
    };
    using std::chrono::hours;
    const std::string_view unknown =
        "the engine's certificate is signed by none of the trusted CAs (upstream.tls.ca)";
    const std::string_view other = "the engine's certificate is for another host (upstream.tls.server_name)";
    const Case cases[] = {
        {{}, ca.certificate(), "localhost", ""},
        {{}, ca.certificate(), "127.0.0.1", ""},
        {{}, stranger.certificate() + ca.certificate(), "localhost", ""},
        {{.names = "DNS:*.ns.svc"}, ca.certificate(), "engine.ns.svc", ""},
        {{}, stranger.certificate(), "localhost", unknown},
        {{}, "", "localhost", unknown},
        {{}, ca.certificate(), "engine.svc", other},
        {{}, ca.certificate(), "127.0.0.2", other},
        {{.names = "DNS:*.ns.svc"}, ca.certificate(), "a.b.ns.svc", other},
        {{.until = hours(-1)}, ca.certificate(), "localhost", "the engine's certificate has expired"},
        {{.from = hours(1), .until = hours(2)},
         ca.certificate(),
         "localhost",
         "the engine's certificate is not valid yet"},
    };
    for (const Case& one : cases) {
        INFO(one.name << ": " << one.text);
        Pair pair;
        pair.begin(*server_context(ca.issue(one.wish)), *client_context(one.trusted, {}, one.name));
        const auto [server, client] = pair.shake_hands();
        CHECK((client == Socket::Handshake::done) == one.text.empty());
        CHECK(pair.client->tls_failure().text == one.text);
        if (!one.text.empty()) {
            CHECK(pair.client->tls_failure().fault == TlsFault::certificate);
            CHECK(server == Socket::Handshake::failed);
        }
        Pair careless;
        careless.begin(*server_context(ca.issue(one.wish)),
                       *client_context(one.trusted, {}, one.name, false));
        CHECK(careless.shake_hands().second == Socket::Handshake::done);
    }
}

TEST_CASE("a client certificate that is demanded is checked") {
    const CertificateAuthority ca;
    const CertificateAuthority clients;
    const Context server = server_context(ca.issue(), clients.certificate());
    const auto fault = [&](const Certified& own) {
        Pair pair;
        pair.begin(*server, *client_context(ca.certificate(), own));
        const auto [server_end, client_end] = pair.shake_hands();
        CHECK(client_end == Socket::Handshake::done);  // TLS 1.3: it learns of it with its first read
        CHECK((server_end == Socket::Handshake::done) ==
              (pair.server->tls_failure().fault == TlsFault::none));
        std::string got;
        if (server_end == Socket::Handshake::failed) {
            CHECK(pair.read_out(*pair.client, got) == IoStatus::broken);
            CHECK(pair.client->tls_failure().text == "the engine does not accept noren's certificate");
        }
        return pair.server->tls_failure().fault;
    };
    CHECK(fault(clients.issue()) == TlsFault::none);
    CHECK(fault({}) == TlsFault::certificate);
    CHECK(fault(ca.issue()) == TlsFault::certificate);
    CHECK(fault(clients.issue({.until = std::chrono::hours(-1)})) == TlsFault::certificate);
}

TEST_CASE("whoever speaks no TLS is told apart from whoever hangs up") {
    const CertificateAuthority ca;
    const Context context = server_context(ca.issue());
    const auto fault = [&](std::string_view said) {
        Pair pair;
        pair.server->start_tls(*context);
        if (!said.empty()) CHECK(pair.client->write(said).bytes == said.size());
        pair.client->shutdown_write();
        Socket::Handshake state{};
        REQUIRE(run_until(pair.loop,
                          [&] { return (state = pair.server->handshake()) != Socket::Handshake::running; }));
        CHECK(state == Socket::Handshake::failed);
        CHECK(pair.server->tls_failure().text.empty());
        return word_of(pair.server->tls_failure().fault);
    };
    CHECK(fault("") == "closed");
    CHECK(fault("\x16\x03\x01") == "closed");
    for (const char* said : {"GET / HTTP/1.1\r\n\r\n", "POST /v1/completions HTTP/1.1\r\n",
                             "DELETE / HTTP/1.1\r\n", "OPTIONS * HTTP/1.1\r\n\r\n",
                             "PATCH /x HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\n\r\n"}) {
        INFO(said);
        CHECK(fault(said) == "plain_text");
    }
    CHECK(fault("SSH-2.0-x\r\n") == "plain_text");
    CHECK(fault(std::string(40, '\xff')) == "protocol");
    CHECK(fault(std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10)) == "protocol");

    Pair pair;
    pair.client->start_tls(*client_context(ca.certificate()));
    CHECK(pair.server->write("HTTP/1.1 400 Bad Request\r\n\r\n").bytes > 0);
    REQUIRE(run_until(pair.loop, [&] { return pair.client->handshake() == Socket::Handshake::failed; }));
    CHECK(pair.client->tls_failure().text == "the engine does not speak TLS on this port");
}

}  // namespace noren::proxy::net
