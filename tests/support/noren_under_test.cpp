#include "tests/support/noren_under_test.hpp"

#include <stdlib.h>
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

std::string get(std::uint16_t port, const std::string& target) {
    Peer peer = Peer::connect(port);
    peer.send("GET " + target + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    const std::string all = peer.receive_all();
    const std::size_t end = all.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : all.substr(end + 4);
}

}  // namespace test
