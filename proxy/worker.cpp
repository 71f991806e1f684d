#include "proxy/worker.hpp"

#include <utility>
#include <vector>

#include "metrics/telemetry.hpp"
#include "proxy/admission/connection_quota.hpp"
#include "proxy/connection.hpp"
#include "proxy/net/client_address.hpp"

namespace noren::proxy {
namespace {

using admission::ConnectionQuota;

net::Task<> serve_client(Worker& worker, net::Descriptor client, ConnectionQuota::Place place) {
    Connection connection(worker, std::move(client), std::move(place));
    co_await connection.serve();
}

/// A label of noren_client_connections_refused_total.
std::string_view reason_of(ConnectionQuota::Entry entry) {
    switch (entry) {
        case ConnectionQuota::Entry::no_descriptors:
            return "descriptors";
        case ConnectionQuota::Entry::client_full:
            return "client_limit";
        default:
            return "limit";
    }
}

}  // namespace

Worker::Worker(Services& services, std::shared_ptr<const Settings> settings)
    : services_(services),
      settings_(std::move(settings)),
      pool_(loop_, settings_->config.upstream.idle_timeout),
      random_(std::random_device{}()) {}

Worker::~Worker() = default;

void Worker::run(net::Descriptor listener, std::span<const std::unique_ptr<Worker>> team) {
    team_ = team;
    acceptor_.emplace(loop_, std::move(listener), services_.reserve,
                      net::Acceptor::Events{[this](net::Descriptor client) { accepted(std::move(client)); },
                                            [this](std::string_view for_want_of) {
                                                services_.telemetry.connection_refused(for_want_of);
                                            }});
    loop_.run();
}

void Worker::accepted(net::Descriptor client) {
    ConnectionQuota::Place place;
    const ConnectionQuota::Entry entry = services_.quota.enter(net::client_key(client.number()), place);
    if (entry != ConnectionQuota::Entry::in) return services_.telemetry.connection_refused(reason_of(entry));
    make_room();
    Worker& server = least_loaded();
    Newcomer newcomer{std::move(client), std::move(place)};
    &server == this ? serve(std::move(newcomer)) : server.take_over(std::move(newcomer));
}

/// Who listens is woken by the kernel's choice, often the same one again and again. A few long streams would
/// all be with one worker, and others have nothing to do. Within a difference of one it stays where it is.
Worker& Worker::least_loaded() {
    Worker* least = this;
    std::uint64_t most = load();
    for (const auto& worker : team_) {
        if (worker->load() + 1 >= most) continue;
        least = worker.get();
        most = worker->load() + 1;
    }
    return *least;
}

bool Worker::fits_one_more_to_engine() const {
    std::uint64_t open = 0;
    for (const auto& worker : team_)
        open += worker->pool().active() + worker->pool().idle();
    return open < services_.quota.descriptors_for_engine();
}

void Worker::make_room() {
    if (fits_one_more_to_engine()) return;
    for (const auto& worker : team_)
        if (worker->pool().idle() > 0) worker->loop().post([&pool = worker->pool()] { pool.close_idle(); });
}

void Worker::serve(Newcomer newcomer) {
    net::spawn(serve_client(*this, std::move(newcomer.client), std::move(newcomer.place)));
}

void Worker::take_over(Newcomer newcomer) {
    on_the_way_.fetch_add(1, std::memory_order_relaxed);
    loop_.post([this, kept = std::make_shared<Newcomer>(std::move(newcomer))] {
        on_the_way_.fetch_sub(1, std::memory_order_relaxed);
        serve(std::move(*kept));
    });
}

void Worker::apply(std::shared_ptr<const Settings> settings) {
    loop_.post([this, next = std::move(settings)]() mutable {
        if (next->tls.upstream != settings_->tls.upstream) pool_.change_rules();
        settings_ = std::move(next);
        pool_.set_idle_timeout(settings_->config.upstream.idle_timeout);
    });
}

void Worker::stop(Stop how) {
    loop_.post([this, how] { stop_here(how); });
}

void Worker::stop_here(Stop how) {
    stopping_ = how;
    if (how == Stop::now) acceptor_.reset();
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
    if (stopping_ == Stop::now && connections_.empty()) loop_.stop();
}

}  // namespace noren::proxy
