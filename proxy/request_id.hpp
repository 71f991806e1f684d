#pragma once
// x-request-id: the client's own if it is usable, else a new random one.

#include <random>
#include <string>

#include "proxy/http/head.hpp"

namespace noren::proxy {

/// At most 128 bytes of printable ASCII without blanks are taken over; of several fields the first. New ones
/// are 32 hex digits. Whichever it is goes to the engine, into the log and to the client.
std::string request_id_of(const http::Fields& fields, std::mt19937_64& random);

}  // namespace noren::proxy
