#pragma once
// A whole noren inside a test: real sockets on loopback, ports chosen by the kernel, its log in a file of its
// own.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/load.hpp"
#include "proxy/app.hpp"

namespace test {

class NorenUnderTest {
  public:
    /// change: what the test wants otherwise than the defaults of a test (one worker, no probing, no control
    /// socket).
    NorenUnderTest(const std::string& upstream_url,
                   const std::function<void(noren::config::Config&)>& change = {},
                   const noren::proxy::HeartbeatLimits& heartbeat = {});
    ~NorenUnderTest();

    std::uint16_t port() const { return app_->port(); }
    std::uint16_t ops_port() const { return app_->ops_port(); }

    /// /metrics, as "name{labels}" -> value.
    std::map<std::string, double> metrics() const;
    double metric(const std::string& series) const;
    /// Waits, up to 20 s, until the series has the value; false if it never does.
    bool reaches(const std::string& series, double value) const;
    /// The access log so far. Stops the server first, so that it is whole.
    std::vector<std::string> access_log();
    /// Writes a config that differs from the present one, and has it loaded as SIGHUP does. Returns when it
    /// is in force.
    void reload(const std::function<void(noren::config::Config&)>& change);
    /// As SIGTERM does: drain, then end.
    void terminate() { app_->terminate(); }
    /// Waits, up to 20 s, for it to have ended by itself.
    bool ends() const;
    void stop();

  private:
    void write_config() const;

    std::string log_file_, config_file_;
    noren::config::Config config_;
    std::unique_ptr<noren::proxy::App> app_;
    std::thread thread_;
    std::atomic<bool> ended_{false};
};

/// A blocking client socket on loopback that gives up after 20 s.
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
    /// Bytes until they hold the text, or the stream is over.
    std::string receive_until(std::string_view text);
    std::string receive_all();
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

/// GET over a connection of its own; the body.
std::string get(std::uint16_t port, const std::string& target);

/// One chunk of a chunked body, as plain as can be.
std::string chunk(std::string_view data);

std::string post_request(const std::string& target, const std::string& body,
                         const std::string& extra_fields = "");

}  // namespace test
