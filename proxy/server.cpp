#include "proxy/server.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>

namespace noren::proxy {
namespace {

constexpr unsigned k_most_default_workers = 4;

/// CPUs of the cgroup v2 quota ("max 100000" = none), rounded up.
unsigned quota_cpus() {
    std::ifstream file("/sys/fs/cgroup/cpu.max");
    std::string quota;
    double period = 0;
    if (!(file >> quota >> period) || quota == "max" || period <= 0) return k_most_default_workers;
    return static_cast<unsigned>(std::ceil(std::strtod(quota.c_str(), nullptr) / period));
}

unsigned affinity_cpus() {
    cpu_set_t set;
    return ::sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

template <typename Figure>
std::uint64_t sum(const std::vector<std::unique_ptr<Worker>>& workers, Figure&& figure) {
    return std::accumulate(workers.begin(), workers.end(), std::uint64_t{0},
                           [&](std::uint64_t total, const auto& worker) { return total + figure(*worker); });
}

}  // namespace

unsigned default_workers() {
    return std::max(1u, std::min({quota_cpus(), affinity_cpus(), k_most_default_workers}));
}

Server::Server(Services& services, const std::shared_ptr<const Settings>& settings,
               const config::Address& listen, unsigned workers)
    : listeners_(listen, workers, settings->config.listen_mode) {
    for (unsigned i = 0; i < workers; ++i)
        workers_.push_back(std::make_unique<Worker>(services, settings));
}

Server::~Server() {
    stop(Stop::now);
    join();
}

void Server::start() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        threads_.emplace_back([this, i] {
            ::pthread_setname_np(::pthread_self(), ("noren-w" + std::to_string(i)).c_str());
            workers_[i]->run(listeners_.take(i), workers_);
        });
    }
}

void Server::post(std::size_t worker, net::Posting& posting) {
    workers_.at(worker)->loop().post(posting);
}

void Server::apply(const std::shared_ptr<const Settings>& settings) {
    for (const auto& worker : workers_)
        worker->apply(settings);
}

void Server::stop(Stop how) {
    for (const auto& worker : workers_)
        worker->stop(how);
}

void Server::join() {
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
}

std::uint64_t Server::connections() const {
    return sum(workers_, [](const Worker& w) { return w.connections(); });
}
std::vector<std::uint64_t> Server::connections_by_worker() const {
    std::vector<std::uint64_t> counts;
    for (const auto& worker : workers_)
        counts.push_back(worker->connections());
    return counts;
}
std::uint64_t Server::upstream_active() const {
    return sum(workers_, [](const Worker& w) { return w.pool().active(); });
}
std::uint64_t Server::upstream_idle() const {
    return sum(workers_, [](const Worker& w) { return w.pool().idle(); });
}

}  // namespace noren::proxy
