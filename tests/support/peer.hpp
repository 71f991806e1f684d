#pragma once
// The other ends of a proxy's connections, played by a test: blocking sockets on loopback that give up after
// 20 s.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

/// Bytes from connection.receive() until they hold the text, or the stream is over.
template <typename Connection>
std::string read_until(Connection& connection, std::string_view text) {
    std::string all;
    while (all.find(text) == std::string::npos) {
        const std::string more = connection.receive();
        if (more.empty()) break;
        all += more;
    }
    return all;
}

/// All bytes until the stream is over.
template <typename Connection>
std::string read_all(Connection& connection) {
    std::string all;
    for (std::string more; !(more = connection.receive()).empty();)
        all += more;
    return all;
}

/// One connection.
class Peer {
  public:
    explicit Peer(int fd) : fd_(fd) {}
    ~Peer() { close(); }
    Peer(Peer&& other) noexcept : fd_(other.fd_), was_reset_(other.was_reset_) { other.fd_ = -1; }
    Peer& operator=(Peer&& other) noexcept {
        std::swap(fd_, other.fd_);
        std::swap(was_reset_, other.was_reset_);
        return *this;
    }
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    static Peer connect(std::uint16_t port);
    /// From this address of loopback (127.0.0.0/8): another client.
    static Peer connect_from(const std::string& address, std::uint16_t port);
    static Peer connect_unix(const std::string& path);

    void send(std::string_view bytes);
    /// Some bytes; empty at the end of the stream, on a reset, or after 20 s.
    std::string receive(std::size_t most = 65536);
    std::string receive_until(std::string_view text) { return read_until(*this, text); }
    std::string receive_all() { return read_all(*this); }
    /// The stream ended by a reset, not by an orderly end, as receive() has seen.
    bool was_reset() const { return was_reset_; }
    /// No byte and no end within so long.
    bool is_silent_for(int milliseconds) const;
    void shutdown_write();
    void close();
    void reset();
    bool is_open() const { return fd_ >= 0; }
    int descriptor() const { return fd_; }

  private:
    int fd_;
    bool was_reset_ = false;
};

/// A listening socket for a test that plays the engine itself.
class Listener {
  public:
    explicit Listener(int backlog = 128);
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    Peer accept();
    /// Somebody connects within so long.
    bool is_called(int milliseconds) const;
    /// Until connecting hangs, as it does to a host that drops packets.
    void fill_backlog();
    std::uint16_t port() const { return port_; }
    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  private:
    int fd_;
    std::uint16_t port_ = 0;
    std::vector<Peer> fillers_;
};

/// A port that nobody else gets and where nobody listens: connecting is refused.
class ClosedPort {
  public:
    ClosedPort();
    ~ClosedPort();
    ClosedPort(const ClosedPort&) = delete;
    ClosedPort& operator=(const ClosedPort&) = delete;

    std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  private:
    int fd_;
    std::uint16_t port_ = 0;
};

/// One chunk of a chunked body, as plain as can be.
std::string chunk(std::string_view data);

/// A POST of JSON. extra_fields: whole lines, each with its CRLF.
std::string post_request(const std::string& target, const std::string& body,
                         const std::string& extra_fields = "");

}  // namespace test
