#include "tests/sim/unit/client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "tests/sim/json_text.hpp"

namespace sim::test {

std::string Reply::field(std::string_view name) const {
    const auto at = head.find(concat("\r\n", name, ": "));
    if (at == std::string::npos) return {};
    const auto start = at + name.size() + 4;
    return head.substr(start, head.find("\r\n", start) - start);
}

Client::Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        const int error = errno;
        close();
        throw std::system_error(error, std::generic_category(), "connect");
    }
}

Client::~Client() {
    close();
}

void Client::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Client::send(std::string_view bytes) const {
    while (!bytes.empty()) {
        const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;  // the reply will tell
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

bool Client::read_more(Reply& reply) {
    char piece[65536];
    const auto n = ::recv(fd_, piece, sizeof piece, 0);
    if (n > 0) {
        received_.append(piece, static_cast<std::size_t>(n));
        return true;
    }
    if (n == 0) reply.close = Close::fin;
    if (n < 0) reply.close = errno == ECONNRESET || errno == EPIPE ? Close::reset : Close::timeout;
    return false;
}

bool Client::read_until(std::string_view text) {
    Reply ignored;
    while (received_.find(text) == std::string::npos) {
        if (!read_more(ignored)) return false;
    }
    return true;
}

// Takes the chunked body that begins at `start` as far as it has come; true = the last chunk was there.
bool Client::parse_chunks(Reply& reply, std::size_t start) {
    reply.chunks.clear();
    reply.body.clear();
    for (std::size_t at = start;;) {
        const auto line_end = received_.find("\r\n", at);
        if (line_end == std::string::npos) return false;
        const std::string line = received_.substr(at, line_end - at);
        char* end = nullptr;
        const std::size_t size = std::strtoull(line.c_str(), &end, 16);
        if (line.empty() || *end != '\0') return false;
        at = line_end + 2;
        if (size == 0) {
            const auto end_of_trailers = received_.find("\r\n\r\n", line_end);
            if (end_of_trailers == std::string::npos) return false;
            reply.trailers = received_.substr(at, end_of_trailers + 2 - at);
            received_.erase(0, end_of_trailers + 4);
            return true;
        }
        const std::string payload = received_.substr(at, size);
        reply.body += payload;
        if (payload.size() < size || received_.compare(at + size, 2, "\r\n") != 0) return false;
        at += size + 2;
        reply.chunks.push_back(payload);
    }
}

Reply Client::read_reply() {
    Reply reply;
    std::size_t head_end = 0;
    for (;;) {
        while ((head_end = received_.find("\r\n\r\n")) == std::string::npos) {
            if (!read_more(reply)) return reply;
        }
        head_end += 4;
        reply.head = received_.substr(0, head_end);
        if (!reply.head.starts_with("HTTP/1.1 ")) return reply;
        reply.status = static_cast<unsigned>(std::atoi(reply.head.c_str() + 9));
        if (reply.status >= 200) break;
        received_.erase(0, head_end);
    }
    const bool chunked = reply.field("transfer-encoding") == "chunked";
    const std::string length = reply.field("content-length");
    for (;;) {
        if (chunked && parse_chunks(reply, head_end)) break;
        if (!chunked) reply.body = received_.substr(head_end);
        if (!length.empty() && reply.body.size() >= std::strtoull(length.c_str(), nullptr, 10)) {
            reply.body.resize(std::strtoull(length.c_str(), nullptr, 10));
            received_.erase(0, head_end + reply.body.size());
            break;
        }
        if (read_more(reply)) continue;
        // Delimited by the end of the connection, then only FIN is an end.
        reply.whole = !chunked && length.empty() && reply.close == Close::fin;
        return reply;
    }
    reply.whole = true;
    return reply;
}

std::string post(std::string_view path, std::string_view body, std::string_view headers) {
    return concat("POST ", path,
                  " HTTP/1.1\r\nhost: sim\r\ncontent-type: application/json\r\ncontent-length: ", body.size(),
                  "\r\n", headers, "\r\n", body);
}

std::string get(std::string_view path) {
    return concat("GET ", path, " HTTP/1.1\r\nhost: sim\r\n\r\n");
}

Reply roundtrip(std::uint16_t port, std::string_view request) {
    Client client(port);
    client.send(request);
    return client.read_reply();
}

}  // namespace sim::test
