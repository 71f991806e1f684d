// After a 101: the bytes mean what client and engine have agreed on, and cross as they come.

#include <utility>

#include "proxy/exchange.hpp"

namespace noren::proxy {

using metrics::Clock;
using metrics::TimePoint;
using net::deadline_after;
using net::IoStatus;

namespace {

/// One direction.
struct Lane {
    net::Socket& from;
    net::Socket& into;
    net::Outbox& out;  ///< of `into`
    std::uint64_t& taken;
    std::uint64_t& given;
    bool ended = false;   ///< the source has sent its last byte
    bool closed = false;  ///< ... and the sink has been told
    bool more = false;    ///< left for the next turn
};

/// Its last byte came long ago, and now it takes nothing any more either: no read and no write tells of that.
bool is_gone(const Lane& lane) {
    return lane.ended && lane.from.was_reset();
}

enum class Carried : unsigned char { nothing, some, source_broken, sink_broken };

/// As much as is there and the sink's bound allows; an end is passed on behind the last byte.
Carried carry(Lane& lane, std::span<char> scratch, std::size_t bound, int reads) {
    const std::uint64_t before = lane.out.written() + lane.taken;
    if (!lane.out.flush()) return Carried::sink_broken;
    lane.more = false;
    while (!lane.ended && lane.out.waiting() < bound) {
        if (reads-- == 0) {
            lane.more = true;
            break;
        }
        const net::IoResult read = lane.from.read(scratch);
        if (read.status == IoStatus::would_block) break;
        if (read.status == IoStatus::broken) return Carried::source_broken;
        lane.ended = read.status == IoStatus::closed;
        lane.taken += read.bytes;
        lane.given += read.bytes;
        if (!lane.out.send(std::string_view(scratch.data(), read.bytes))) return Carried::sink_broken;
    }
    if (lane.ended && lane.out.empty() && !std::exchange(lane.closed, true)) lane.into.shutdown_write();
    return lane.out.written() + lane.taken == before ? Carried::nothing : Carried::some;
}

}  // namespace

/// Until both sides have ended, or one breaks, or nothing has moved for timeouts.tunnel_idle.
net::Task<Verdict> Exchange::tunnel() {
    Lane down{engine_.lease->socket(), down_.socket, down_.out, bytes_.from_upstream, bytes_.to_client};
    Lane up{down_.socket, engine_.lease->socket(), *engine_.out, bytes_.from_client, bytes_.to_upstream};
    const std::size_t bound = settings_->config.downstream.buffer;
    bytes_.from_client += down_.in.size();
    bytes_.to_upstream += down_.in.size();
    engine_.out->send(std::exchange(down_.in, {}));  // what the client sent ahead is of the new protocol
    TimePoint moved = Clock::now();
    for (;;) {
        const Carried to_client = carry(down, worker_.scratch(), bound, k_reads_per_turn);
        const Carried to_engine = carry(up, worker_.scratch(), bound, k_reads_per_turn);
        if (to_client == Carried::sink_broken || to_engine == Carried::source_broken)
            co_return make_failure(Reason::client_closed, "the client broke the connection off");
        if (to_client == Carried::source_broken || to_engine == Carried::sink_broken)
            co_return make_failure(Reason::upstream_reset, "the engine broke the connection off");
        if (down.closed && up.closed) co_return std::nullopt;
        if (is_gone(up)) co_return make_failure(Reason::client_closed, "the client broke the connection off");
        if (is_gone(down))
            co_return make_failure(Reason::upstream_reset, "the engine broke the connection off");
        const TimePoint now = Clock::now();
        if (to_client == Carried::some || to_engine == Carried::some) moved = now;
        const Due due = sooner({deadline_after(moved, settings_->config.timeouts.tunnel_idle),
                                Reason::tunnel_timeout, "nothing has crossed the tunnel for too long"},
                               {deadline_after(began_, settings_->config.timeouts.total),
                                Reason::total_timeout, "timeouts.total is over"});
        if (Verdict failure = expired(due)) co_return failure;
        if (down.more || up.more) down_.wakeup.waker().post();
        co_await down_.wakeup.wait(due.at);
    }
}

}  // namespace noren::proxy
