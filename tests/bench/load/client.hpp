#pragma once
// One connection to a server that requests are sent over, one at a time.

#include <string>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include "tests/bench/load/histogram.hpp"
#include "tests/bench/load/options.hpp"
#include "tests/bench/load/request_source.hpp"
#include "tests/bench/load/result.hpp"
#include "tests/bench/load/sim_text.hpp"
#include "tests/bench/load/target.hpp"
#include "tests/bench/load/verdict.hpp"
#include "tests/bench/load/watch.hpp"

namespace load {

namespace asio = boost::asio;

class Client {
  public:
    /// All must outlive the client.
    Client(asio::io_context& io, const Options& options, const SimText& sim_text, const Target& target)
        : options_(options), sim_text_(sim_text), target_(target), socket_(io) {}

    /// Never throws; what went wrong is in the result. The times of its token events are added to `times`.
    asio::awaitable<Result> run(const Request& request, EventTimes& times);

  private:
    using Socket = asio::generic::stream_protocol::socket;

    /// One try at one request.
    struct Exchange {
        Exchange(const Options& options, const Request& what, Result& into, EventTimes& times_into);

        const Request& request;
        Result& result;
        EventTimes& times;
        Reading reading;
        AnswerReader reader;
        TimePoint now;  ///< of the read under way
        bool any_byte = false;

        /// Bytes have come: false = that was the last of them, for good or ill.
        bool received(std::string_view bytes, TimePoint read_at);

      private:
        void take_stamped(const Event& event);
    };

    asio::awaitable<void> attempt(Exchange& exchange);
    asio::awaitable<void> connect(Exchange& exchange, Watch& watch);
    asio::awaitable<void> converse(Exchange& exchange, Watch& watch);
    std::string head_of(const Request& request) const;
    void conclude(Exchange& exchange);
    void disconnect();

    const Options& options_;
    const SimText& sim_text_;
    const Target& target_;
    Socket socket_;
};

}  // namespace load
