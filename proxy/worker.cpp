#include "proxy/worker.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "proxy/connection.hpp"

namespace noren::proxy {

namespace asio = boost::asio;

namespace {

constexpr auto tuple_awaitable = asio::as_tuple(asio::use_awaitable);

// With no descriptor left accept() fails at once, again and again: wait for one to come back.
constexpr std::chrono::milliseconds k_accept_pause{20};

asio::awaitable<void> serve_client(Worker& worker, net::Socket socket) {
    Connection connection(worker, std::move(socket));
    co_await connection.serve();
}

}  // namespace

Worker::Worker(Services& services, std::shared_ptr<const Settings> settings)
    : services_(services),
      alive_(asio::make_work_guard(io_)),
      settings_(std::move(settings)),
      pool_(io_, settings_->config.upstream.idle_timeout),
      random_(std::random_device{}()) {}

Worker::~Worker() = default;

void Worker::run(net::ListenerSet& listeners, std::size_t index) {
    asio::co_spawn(io_, accept(listeners.acceptor(index, io_)), asio::detached);
    io_.run();
}

asio::awaitable<void> Worker::accept(net::Acceptor acceptor) {
    asio::steady_timer pause(io_);
    while (stopping_ != Stop::now) {
        net::Native socket(io_);
        const auto [error] = co_await acceptor.async_accept(socket, tuple_awaitable);
        if (error) {
            pause.expires_after(k_accept_pause);
            co_await pause.async_wait(tuple_awaitable);
            continue;
        }
        if (connections_.size() >= settings_->config.downstream.max_connections)
            continue;  // closed by its destructor
        net::Socket client(std::move(socket));
        asio::co_spawn(io_, serve_client(*this, std::move(client)), asio::detached);
    }
}

void Worker::apply(std::shared_ptr<const Settings> settings) {
    asio::post(io_, [this, next = std::move(settings)]() mutable {
        settings_ = std::move(next);
        pool_.set_idle_timeout(settings_->config.upstream.idle_timeout);
    });
}

void Worker::stop(Stop how) {
    asio::post(io_, [this, how] { stop_here(how); });
}

void Worker::post(std::function<void()> task) {
    asio::post(io_, std::move(task));
}

void Worker::stop_here(Stop how) {
    stopping_ = how;
    // A woken connection may end and leave the set inside the call: wake from a copy.
    std::vector<net::Waker> wakers;
    for (const Connection* connection : connections_)
        wakers.push_back(connection->waker());
    for (const net::Waker& waker : wakers)
        waker.notify();
    end_if_done();
}

void Worker::joined(Connection& connection) {
    connections_.insert(&connection);
    connection_count_.store(connections_.size(), std::memory_order_relaxed);
}

void Worker::left(Connection& connection) {
    connections_.erase(&connection);
    connection_count_.store(connections_.size(), std::memory_order_relaxed);
    end_if_done();
}

void Worker::end_if_done() {
    if (stopping_ == Stop::now && connections_.empty()) io_.stop();
}

}  // namespace noren::proxy
