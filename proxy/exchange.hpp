#pragma once
// One request and its answer: the straight line from the parsed head to the recorded end.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "metrics/exchange_meter.hpp"
#include "metrics/observe/request_observer.hpp"
#include "proxy/admission/gate.hpp"
#include "proxy/connection.hpp"
#include "proxy/failure.hpp"
#include "proxy/http/head.hpp"
#include "proxy/relay/answer.hpp"
#include "proxy/relay/upload.hpp"
#include "proxy/route.hpp"
#include "proxy/upstream/pool.hpp"
#include "proxy/worker.hpp"

namespace noren::proxy {

/// Lives in the connection's frame for the length of run(). Everything it holds (permit, lease, gauges) gives
/// itself back when it goes, whatever way run() ends. The worker's thread only.
class Exchange {
  public:
    /// head views text that the caller keeps until run() is over. at: when the head was parsed (t_recv).
    Exchange(Worker& worker, Downstream& down, const http::RequestHead& head, metrics::TimePoint at);

    /// True: the client's connection can carry another request.
    asio::awaitable<bool> run();

  private:
    using Verdict = std::optional<Failure>;  ///< empty: go on

    // The phases, in order. Each moves the exchange on or says why it cannot go on.
    Verdict check();
    asio::awaitable<Verdict> collect_body();
    asio::awaitable<Verdict> admit();
    asio::awaitable<Verdict> connect();
    asio::awaitable<Verdict> relay();
    bool finish(const Verdict& failure);

    // What a phase does between two sleeps.
    Verdict send_request();
    Verdict pump_upload();
    Verdict pump_answer();
    Verdict take_answer_head();
    Verdict take_answer_body(std::string_view bytes, metrics::TimePoint at);
    void answer_over(metrics::TimePoint at);
    Verdict watch_client();
    Verdict check_clock();
    asio::awaitable<void> sleep(metrics::TimePoint deadline);

    Worker& worker_;
    Downstream& down_;
    const std::shared_ptr<const Settings> settings_;  ///< in force when the exchange began, to its end
};

}  // namespace noren::proxy
