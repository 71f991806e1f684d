#include "tests/sim/engine.hpp"

#include <future>
#include <system_error>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "tests/sim/connection.hpp"
#include "tests/sim/core.hpp"
#include "tests/sim/json_text.hpp"

namespace sim {

using tcp = net::ip::tcp;

class Engine::Impl {
  public:
    explicit Impl(Options options) : core_(io_, std::move(options)), acceptor_(io_), pause_(io_) {
        core_.refuse_for = [this](std::chrono::milliseconds time, bool drop) { refuse_for(time, drop); };
    }
    ~Impl() { stop(); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void start() {
        endpoint_ = tcp::endpoint(net::ip::make_address(core_.options().address), core_.options().port);
        listen();
        endpoint_ = acceptor_.local_endpoint();
        net::co_spawn(io_, accept_loop(), net::detached);
        thread_ = std::thread([this] { io_.run(); });
    }

    void stop() {
        if (!thread_.joinable()) return;
        net::post(io_, [this] {
            core_.stop();
            pause_.cancel();
            acceptor_.close();
        });
        thread_.join();
    }

    /// Runs `action` on the engine's thread and waits for it.
    template <typename Action>
    void run_there(Action action) {
        std::promise<void> done;
        net::post(io_, [&] {
            action();
            done.set_value();
        });
        done.get_future().wait();
    }

    void refuse_for(std::chrono::milliseconds time, bool drop) {
        reopen_at_ = Clock::now() + time;
        acceptor_.close();
        if (drop) core_.abort_connections();
    }

    Core& core() { return core_; }
    std::uint16_t port() const { return endpoint_.port(); }
    std::string wish() const {
        return concat("cannot listen on ", core_.options().address, " port ", core_.options().port);
    }

  private:
    void listen() {
        acceptor_.open(endpoint_.protocol());
        acceptor_.set_option(tcp::acceptor::reuse_address(true));
        acceptor_.bind(endpoint_);
        acceptor_.listen(4096);
    }

    net::awaitable<void> accept_loop() {
        while (!core_.stopping()) {
            auto [error, socket] = co_await acceptor_.async_accept(tuple_awaitable);
            if (!error) {
                net::co_spawn(io_, serve_connection(std::move(socket), core_), net::detached);
            } else if (!core_.stopping()) {
                // Closed for a while on purpose, or out of descriptors.
                const TimePoint soon = Clock::now() + std::chrono::milliseconds(10);
                while (!core_.stopping() && Clock::now() < std::max(reopen_at_, soon)) {
                    pause_.expires_at(std::max(reopen_at_, soon));
                    co_await pause_.async_wait(tuple_awaitable);
                }
                if (!acceptor_.is_open() && !core_.stopping()) listen();
            }
        }
    }

    net::io_context io_{1};
    Core core_;
    tcp::acceptor acceptor_;
    net::steady_timer pause_;
    tcp::endpoint endpoint_;
    TimePoint reopen_at_{};
    std::thread thread_;
};

Engine::Engine(Options options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Engine::~Engine() = default;

void Engine::start() {
    try {
        impl_->start();
    } catch (const boost::system::system_error& error) {
        // In the standard's terms, and without the lines of Boost's source that its what() names.
        throw std::system_error(error.code(), impl_->wish());
    }
}

void Engine::stop() {
    impl_->stop();
}
std::uint16_t Engine::port() const {
    return impl_->port();
}
Counters Engine::counters() const {
    return impl_->core().counters();
}
std::vector<Truth> Engine::truth() const {
    return impl_->core().log().kept();
}

bool Engine::wait_for_truths(std::uint64_t count, std::chrono::milliseconds patience) const {
    return impl_->core().log().wait_for(count, patience);
}

void Engine::set_script(std::vector<Fault> script) {
    impl_->run_there([&] { impl_->core().set_script(std::move(script)); });
}

void Engine::refuse_for(std::chrono::milliseconds time, bool drop) {
    impl_->run_there([&] { impl_->refuse_for(time, drop); });
}

}  // namespace sim
