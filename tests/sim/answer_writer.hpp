#pragma once
// Writes an answer and, beside it, the truth about it.

#include <string_view>

#include "tests/sim/exchange.hpp"
#include "tests/sim/wire.hpp"

namespace sim {

/// Every awaitable function returns false once nothing more can be written. A digest of the body that was
/// asked for goes out in front of a body with a length and behind a chunked one; a body that ends with the
/// connection has none.
class AnswerWriter {
  public:
    explicit AnswerWriter(Exchange& exchange);

    /// Request id, framing of HTTP/1.0 and x-sim-close, and `connection` are added here.
    net::awaitable<bool> head(ResponseHead head);
    net::awaitable<bool> event(const Event& event);
    net::awaitable<bool> events(const Events& events);
    net::awaitable<bool> end();

    /// Head, JSON body and end of an answer that is not streamed.
    net::awaitable<bool> document(unsigned status, std::string_view body);

    /// Breaks the chunked framing and closes.
    net::awaitable<void> break_chunk();

    /// The one place that says how an answer ended; `whole` = all was written. Returns whether the connection
    /// may carry another request.
    bool settle(bool whole);

  private:
    Exchange& exchange_;
    Wire wire_;
    bool digest_follows_ = false;
};

}  // namespace sim
