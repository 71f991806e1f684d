#pragma once
// x-request-id: the client's own if it is usable, else a new random one.

#include <random>
#include <string>

#include "proxy/http/head.hpp"

namespace noren::proxy {

/// At most 128 bytes of printable ASCII are taken over into logs; new ones are 32 hex digits.
std::string request_id_of(const http::Fields& fields, std::mt19937_64& random);

}  // namespace noren::proxy
