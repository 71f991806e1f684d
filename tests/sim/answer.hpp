#pragma once
// How a request with a truth is answered, once its body has been read. Each function returns whether the
// connection may carry another request.

#include <string_view>

#include "tests/sim/exchange.hpp"

namespace sim {

/// Any of the APIs.
net::awaitable<bool> answer_ask(Exchange& exchange, const Ask& ask);

/// /raw/chunked and /raw/sink; `query` without the question mark.
net::awaitable<bool> answer_raw(Exchange& exchange, std::string_view path, std::string_view query);

/// A JSON body; the truth says "refused" if the status is an error.
net::awaitable<bool> answer_document(Exchange& exchange, unsigned status, std::string_view body);

/// Does what the faults do that come instead of any answer; false = the fault is none of these.
net::awaitable<bool> misbehave_before_head(Exchange& exchange);

}  // namespace sim
