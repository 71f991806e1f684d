#pragma once
// The data port: all workers, their threads and their listeners.

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/address.hpp"
#include "proxy/net/listener.hpp"
#include "proxy/worker.hpp"

namespace noren::proxy {

/// How many workers `workers: 0` means: the CPUs of this container (cgroup quota and affinity), at most 4.
unsigned default_workers();

class Server {
  public:
    /// Binds at once; throws boost::system::system_error where it cannot.
    Server(Services& services, const std::shared_ptr<const Settings>& settings, const config::Address& listen,
           unsigned workers);
    /// Breaks off what still runs.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Starts the workers' threads.
    void start();
    /// Any thread, any time.
    void apply(const std::shared_ptr<const Settings>& settings);
    void stop(Stop how);
    /// Runs it on the loop of a worker.
    void post(std::size_t worker, net::Posting& posting);
    /// After stop(now): waits for the workers to end.
    void join();

    /// Where work that belongs to no connection may run.
    net::Loop& loop() { return workers_.front()->loop(); }
    const std::string& address() const { return listeners_.name(); }
    std::uint16_t port() const { return listeners_.port(); }
    std::size_t workers() const { return workers_.size(); }
    std::uint64_t connections() const;
    std::vector<std::uint64_t> connections_by_worker() const;
    std::uint64_t upstream_active() const;
    std::uint64_t upstream_idle() const;

  private:
    net::ListenerSet listeners_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::vector<std::thread> threads_;
};

}  // namespace noren::proxy
