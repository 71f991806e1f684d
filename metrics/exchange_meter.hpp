#pragma once
// The stopwatch of one exchange: the proxy tells it what happens, it keeps the stamps and writes every metric
// and the access-log line. One per request; used by one thread; the registry behind it is shared by all.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "metrics/clock.hpp"
#include "metrics/observe/response_observer.hpp"
#include "metrics/stages.hpp"

namespace noren::metrics {

class Telemetry;

enum class ApiEndpoint : unsigned char {
    chat_completions,
    completions,
    responses,
    messages,
    embeddings,
    rerank,
    passthrough
};

enum class Outcome : unsigned char {
    ok,              ///< a whole answer below 400
    client_closed,   ///< the client left first
    rejected,        ///< noren refused it a place
    timeout,         ///< a limit of noren's ran out, the end of a drain included
    upstream_error,  ///< the engine: unreachable, broken off, not HTTP, 5xx, or an error inside a 200 stream
    bad_request,     ///< malformed (noren's verdict), or 4xx (the engine's)
    internal_error,  ///< a fault of noren's
};

/// Where a request was when its client left.
enum class Phase : unsigned char { upload, queued, connect, prefill, decode };

/// How an exchange ended, as far as the proxy knows: ok is an answer relayed whole, whatever its status. What
/// the status and the stream say is worked in by the meter. Strings are of static storage.
struct Ending {
    Outcome outcome = Outcome::ok;
    int status = 0;                ///< sent to the client; 0 = none was
    std::string_view reason;       ///< x-noren-reason word, e.g. "queue_full"; empty if ok
    std::string_view detail = {};  ///< the reason as a sentence
    bool caught_up = false;        ///< every byte the engine has sent so far is with the client's kernel
};

struct ByteCounts {
    std::uint64_t from_client = 0, to_client = 0, from_upstream = 0, to_upstream = 0;  ///< body bytes
};

class ExchangeMeter {
  public:
    /// at: t_recv, the head parsed. request_id, method and path (no query) are for the log line only, and
    /// stay the caller's until finish() is over.
    /// gated: false = pass-through (counted in requests and bytes, not in latency figures).
    ExchangeMeter(Telemetry& telemetry, ApiEndpoint endpoint, bool gated, std::string_view request_id,
                  std::string_view method, std::string_view path, TimePoint at);
    /// An exchange that is never finished() is one of our faults: it is counted as internal_error.
    ~ExchangeMeter();
    ExchangeMeter(const ExchangeMeter&) = delete;
    ExchangeMeter& operator=(const ExchangeMeter&) = delete;

    /// Ready to be admitted: stage queue begins. body_whole: nothing of the request is still to come.
    void queued(TimePoint at, bool body_whole);
    void admitted(TimePoint at);                ///< permit held: stage connect begins; running until finish()
    void connected(TimePoint at, bool reused);  ///< upstream connection ready: stage upload begins again
    void sent(TimePoint at);  ///< last request byte handed to the kernel: stage prefill begins
    /// What the request body said, as soon as known (any number of times; the last call before finish
    /// counts). choices: sequences in all.
    void asked(std::string_view model, std::int64_t choices, bool stream, std::int64_t of_each_prompt = 1);
    void answer_head(int status, std::string_view content_type, std::string_view content_encoding,
                     TimePoint at);

    // An answer that is fetched for several: what one of them waits for is the engine's work (stage prefill),
    // until it is there as a whole.
    void shared_awaited(TimePoint at);
    void shared_answer(int status, TimePoint at);

    /// The connection carries another protocol from here on, until finish().
    void switched(std::string_view protocol, TimePoint at);

    // The token path: for each read from the engine, prefetch() ahead of it, body() for each piece of body in
    // it, then mark() once.
    void prefetch() const noexcept;
    void body(std::string_view piece) noexcept;
    void mark(TimePoint at) noexcept;  ///< that read completed at `at`: stamps the events it completed

    void stalled(
        TimePoint at) noexcept;  ///< upstream data is ready (or all read), the client's socket is full
    void resumed(TimePoint at) noexcept;  ///< ... and has room again
    void upstream_done(TimePoint at);     ///< the engine's answer is whole: the permit goes back
    void upstream_broken() noexcept;      ///< ... is over, and was broken off: likewise
    Phase phase() const noexcept;         ///< where it is now, for client_closed

    /// The exchange is over (last byte to the client, or the break). Exactly once. Records everything.
    void finish(const Ending& ending, const ByteCounts& bytes, TimePoint at);
    bool finished() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace noren::metrics
