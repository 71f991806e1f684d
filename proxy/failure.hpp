#pragma once
// Everything that can go wrong with an exchange and is ours to tell: what it is called, whose side it was on,
// and the one place where it becomes an answer.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/exchange_meter.hpp"
#include "proxy/reply.hpp"
#include "proxy/route.hpp"

namespace noren::proxy {

enum class Reason : unsigned char {
    client_closed,      ///< downstream: gone before the end
    bad_request,        ///< downstream: framing or syntax
    head_timeout,       ///< downstream: no whole head in time
    body_timeout,       ///< downstream: the body stopped coming
    body_too_large,     ///< downstream
    stall_timeout,      ///< downstream: took no byte of its answer for too long
    queue_full,         ///< local
    queue_timeout,      ///< local
    draining,           ///< local
    total_timeout,      ///< local
    tunnel_timeout,     ///< local: nothing crossed a tunnel for too long
    upstream_connect,   ///< upstream: no connection
    upstream_tls,       ///< upstream: no TLS on it, or a certificate that was not accepted
    upstream_reset,     ///< upstream: connection lost before the whole answer
    upstream_timeout,   ///< upstream: silent for too long
    upstream_protocol,  ///< upstream: an answer that is unparsable or ambiguous
    internal_error,     ///< local: a fault of ours
};

/// The word in x-noren-reason, logs and metrics.
std::string_view word_of(Reason reason);
/// How an exchange that it ends is counted.
metrics::Outcome outcome_of(Reason reason);

struct Failure {
    Reason reason = Reason::internal_error;
    int status = 500;
    std::string_view detail;                                  ///< one sentence for a person, fixed text
    std::optional<std::uint32_t> retry_after = std::nullopt;  ///< seconds
};

/// Empty: go on. Else why not. One word, since every coroutine's frame holds some.
class Verdict {
  public:
    Verdict() = default;
    Verdict(std::nullopt_t) {}
    Verdict(const Failure& failure) : failure_(std::make_unique<Failure>(failure)) {}

    explicit operator bool() const { return failure_ != nullptr; }
    const Failure* operator->() const { return failure_.get(); }
    const Failure& operator*() const { return *failure_; }

  private:
    std::unique_ptr<const Failure> failure_;
};

/// status: 0 = the usual one of the reason.
Failure make_failure(Reason reason, std::string_view detail, int status = 0);

/// A whole answer, head and body, in the dialect of the API called, so that its SDK raises the right error.
std::string to_response(const Failure& failure, Dialect dialect, const Reply& reply);

}  // namespace noren::proxy
