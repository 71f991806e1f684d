#pragma once
// Which requests for the metrics page are the same, and how one goes to the engine for all of them.

#include <string_view>

#include "config/address.hpp"
#include "proxy/engine_page/page_board.hpp"
#include "proxy/http/head.hpp"

namespace noren::proxy::engine_page {

/// Of a client's GET. Fields that might change the answer (Accept, Accept-Encoding, Authorization, Cookie,
/// any that are not known) keep requests apart; those that tell who asks (User-Agent, Forwarded, trace ids)
/// do not.
PageRequest client_request(const http::RequestHead& head, std::string_view request_id);

/// noren's own.
PageRequest own_request(const config::Address& engine, std::string_view path);

}  // namespace noren::proxy::engine_page
