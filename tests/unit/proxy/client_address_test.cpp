#include "proxy/net/client_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include <catch2/catch.hpp>

#include "proxy/net/descriptor.hpp"

namespace noren::proxy::net {
namespace {

using Key = std::array<unsigned char, 16>;

Key key_of(const std::string& address) {
    Key key{};
    REQUIRE(::inet_pton(AF_INET6, address.c_str(), key.data()) == 1);
    return key;
}

/// What the accepting side makes of a client that comes from there. Nothing where the host lacks the family.
std::optional<Key> seen_from(const std::string& address, int family, bool dual = false) {
    sockaddr_storage here{};
    socklen_t size = dual || family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    here.ss_family = static_cast<sa_family_t>(dual ? AF_INET6 : family);
    const Descriptor listening(::socket(here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int off = 0;
    if (dual) ::setsockopt(listening.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (::bind(listening.number(), reinterpret_cast<const sockaddr*>(&here), size) != 0 ||
        ::listen(listening.number(), 1) != 0)
        return std::nullopt;
    ::getsockname(listening.number(), reinterpret_cast<sockaddr*>(&here), &size);
    const in_port_t port = dual || family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(here).sin6_port
                                                      : reinterpret_cast<sockaddr_in&>(here).sin_port;
    const Descriptor client(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage there{};
    there.ss_family = static_cast<sa_family_t>(family);
    if (family == AF_INET) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(there);
        ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr);
        if (::bind(client.number(), reinterpret_cast<const sockaddr*>(&there), sizeof v4) != 0) return {};
        ::inet_pton(AF_INET, "127.0.0.1", &v4.sin_addr);
        v4.sin_port = port;
    } else {
        auto& v6 = reinterpret_cast<sockaddr_in6&>(there);
        ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr);
        v6.sin6_port = port;
    }
    if (::connect(client.number(), reinterpret_cast<const sockaddr*>(&there),
                  family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6)) != 0)
        return std::nullopt;
    const Descriptor accepted(::accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC));
    return client_key(accepted.number());
}

}  // namespace

TEST_CASE("an IPv4 client is itself, on an IPv4 and on a dual socket") {
    CHECK(seen_from("127.0.0.9", AF_INET) == key_of("::ffff:127.0.0.9"));
    if (const auto dual = seen_from("127.0.0.9", AF_INET, true)) CHECK(*dual == key_of("::ffff:127.0.0.9"));
}

TEST_CASE("an IPv6 client is its /64") {
    if (const auto six = seen_from("::1", AF_INET6))
        CHECK(*six == key_of("::"));  // the 1 is in the host part
}

TEST_CASE("a client on a Unix socket has no address, nor has one that is gone") {
    std::array<int, 2> pair{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) == 0);
    const Descriptor one(pair[0]), other(pair[1]);
    CHECK_FALSE(client_key(one.number()));
    const Descriptor unconnected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    CHECK_FALSE(client_key(unconnected.number()));
}

TEST_CASE("a client is written as people know it") {
    CHECK(to_text(key_of("::ffff:192.0.2.1")) == "192.0.2.1");
    CHECK(to_text(key_of("2001:db8:0:1::")) == "2001:db8:0:1::/64");
}

}  // namespace noren::proxy::net
