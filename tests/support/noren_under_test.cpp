#include "tests/support/noren_under_test.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "config/render.hpp"

namespace test {
namespace {

constexpr std::chrono::seconds k_patience{20};

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

void set_patience(int fd) {
    const timeval patience{k_patience.count(), 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

std::string temporary_file() {
    std::string name = "/tmp/noren-test-XXXXXX";
    const int fd = ::mkstemp(name.data());
    if (fd < 0) throw std::runtime_error("no temporary file");
    ::close(fd);
    return name;
}

}  // namespace

NorenUnderTest::NorenUnderTest(const std::string& upstream_url,
                               const std::function<void(noren::config::Config&)>& change,
                               const noren::proxy::HeartbeatLimits& heartbeat)
    : log_file_(temporary_file()), config_file_(temporary_file()) {
    noren::config::Config& config = config_;
    config.listen = "127.0.0.1:0";
    config.ops.listen = "127.0.0.1:0";
    config.workers = 1;
    config.upstream.url = upstream_url;
    config.upstream.health_interval = {};
    config.control.socket.clear();
    config.drain.lame_duck = {};
    config.log.access = log_file_;
    config.log.level = "error";
    if (change) change(config);
    write_config();
    noren::config::Sources sources;
    sources.flags.config = config_file_;
    const noren::config::Resolved loaded = noren::config::load(sources);
    if (!loaded.config) throw std::runtime_error(loaded.mistakes.front().to_string());
    app_ = std::make_unique<noren::proxy::App>(loaded, sources, heartbeat);
    thread_ = std::thread([this] {
        app_->run(false);
        ended_ = true;
    });
}

NorenUnderTest::~NorenUnderTest() {
    stop();
    ::unlink(log_file_.c_str());
    ::unlink(config_file_.c_str());
}

/// In one step: the file is watched, and half of it would be another config.
void NorenUnderTest::write_config() const {
    const std::string whole = config_file_ + ".new";
    std::ofstream(whole) << noren::config::render(config_);
    if (std::rename(whole.c_str(), config_file_.c_str()) != 0) throw std::runtime_error("no config file");
}

void NorenUnderTest::reload(const std::function<void(noren::config::Config&)>& change) {
    const std::string reloads = "noren_config_reloads_total{result=\"ok\"}";
    const double before = metric(reloads);
    change(config_);
    write_config();
    app_->reload();
    const auto give_up = std::chrono::steady_clock::now() + k_patience;
    while (metric(reloads) == before)
        if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("no reload");
}

void NorenUnderTest::stop() {
    if (!thread_.joinable()) return;
    app_->stop_now();
    thread_.join();
    app_.reset();
}

std::map<std::string, double> NorenUnderTest::metrics() const {
    std::map<std::string, double> values;
    std::istringstream lines(get(ops_port(), "/metrics"));
    for (std::string line; std::getline(lines, line);) {
        const std::size_t blank = line.rfind(' ');
        if (!line.starts_with('#') && blank != std::string::npos)
            values[line.substr(0, blank)] = std::stod(line.substr(blank + 1));
    }
    return values;
}

double NorenUnderTest::metric(const std::string& series) const {
    const auto all = metrics();
    const auto found = all.find(series);
    return found == all.end() ? -1 : found->second;
}

bool NorenUnderTest::ends() const {
    const auto give_up = std::chrono::steady_clock::now() + k_patience;
    while (!ended_ && std::chrono::steady_clock::now() < give_up)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return ended_;
}

bool NorenUnderTest::reaches(const std::string& series, double value) const {
    const auto give_up = std::chrono::steady_clock::now() + k_patience;
    while (metric(series) != value)
        if (std::chrono::steady_clock::now() > give_up) return false;
    return true;
}

std::vector<std::string> NorenUnderTest::access_log() {
    stop();
    std::vector<std::string> lines;
    std::ifstream file(log_file_);
    for (std::string line; std::getline(file, line);)
        lines.push_back(line);
    return lines;
}

Peer Peer::connect(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(port);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("cannot connect");
    set_patience(fd);
    return Peer(fd);
}

Peer Peer::connect_unix(const std::string& path) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        throw std::runtime_error("cannot connect to " + path);
    set_patience(fd);
    return Peer(fd);
}

void Peer::send(std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (n <= 0) return;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
}

std::string Peer::receive(std::size_t most) {
    std::string buffer(most, '\0');
    const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
    was_reset_ |= n < 0 && errno == ECONNRESET;
    buffer.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return buffer;
}

std::string Peer::receive_until(std::string_view text) {
    std::string all;
    while (all.find(text) == std::string::npos) {
        const std::string more = receive();
        if (more.empty()) break;
        all += more;
    }
    return all;
}

std::string Peer::receive_all() {
    std::string all;
    for (std::string more; !(more = receive()).empty();)
        all += more;
    return all;
}

bool Peer::is_silent_for(int milliseconds) const {
    pollfd look{fd_, POLLIN, 0};
    return ::poll(&look, 1, milliseconds) == 0;
}

void Peer::shutdown_write() {
    ::shutdown(fd_, SHUT_WR);
}

void Peer::close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
}

void Peer::reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
}

Listener::Listener(int backlog) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd_, backlog) != 0 || ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
        throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
    const timeval patience{k_patience.count(), 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

Listener::~Listener() {
    ::close(fd_);
}

Peer Listener::accept() {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) throw std::runtime_error("nobody connected");
    set_patience(fd);
    return Peer(fd);
}

bool Listener::is_called(int milliseconds) const {
    pollfd look{fd_, POLLIN, 0};
    return ::poll(&look, 1, milliseconds) == 1;
}

void Listener::fill_backlog() {
    // Non-blocking: the last ones stay half-open, which is the point.
    const sockaddr_in address = loopback(port_);
    for (int i = 0; i < 8; ++i) {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
        fillers_.emplace_back(fd);
    }
}

ClosedPort::ClosedPort() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
}

ClosedPort::~ClosedPort() {
    ::close(fd_);
}

std::string get(std::uint16_t port, const std::string& target) {
    Peer peer = Peer::connect(port);
    peer.send("GET " + target + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    const std::string all = peer.receive_all();
    const std::size_t end = all.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : all.substr(end + 4);
}

std::string chunk(std::string_view data) {
    std::ostringstream framed;
    framed << std::hex << data.size() << "\r\n" << data << "\r\n";
    return framed.str();
}

std::string post_request(const std::string& target, const std::string& body,
                         const std::string& extra_fields) {
    return "POST " + target + " HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n" + extra_fields +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace test
