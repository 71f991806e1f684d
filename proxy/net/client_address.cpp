#include "proxy/net/client_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace noren::proxy::net {
namespace {

using Key = std::array<unsigned char, 16>;

constexpr Key k_mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};  // RFC 4291 2.5.5.2
constexpr std::size_t k_mapped_prefix = 12;
constexpr std::size_t k_network = 8;  // bytes of a /64

bool is_mapped(const Key& key) {
    return std::equal(key.begin(), key.begin() + k_mapped_prefix, k_mapped.begin());
}

}  // namespace

std::optional<Key> client_key(int descriptor) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return std::nullopt;
    Key key = k_mapped;
    if (peer.ss_family == AF_INET) {
        const auto& address = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
        std::memcpy(key.data() + k_mapped_prefix, &address, sizeof address);
        return key;
    }
    if (peer.ss_family != AF_INET6) return std::nullopt;
    std::memcpy(key.data(), &reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr, key.size());
    if (!is_mapped(key)) std::fill(key.begin() + k_network, key.end(), 0);
    return key;
}

std::string to_text(const Key& key) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (is_mapped(key)) {
        ::inet_ntop(AF_INET, key.data() + k_mapped_prefix, text.data(), text.size());
        return text.data();
    }
    ::inet_ntop(AF_INET6, key.data(), text.data(), text.size());
    return std::string(text.data()) + "/64";
}

}  // namespace noren::proxy::net
