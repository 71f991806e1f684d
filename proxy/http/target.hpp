#pragma once
// Request targets and authorities (RFC 9112 section 3.2, RFC 3986).

#include <optional>
#include <string_view>

#include "proxy/http/head.hpp"

namespace noren::proxy::http {

struct Target {
    std::string_view origin_form;  ///< path and query, or "*"
    std::string_view authority;    ///< of an absolute-form target, else empty
    std::optional<HeadError> error;
};

/// Takes origin-form, absolute-form (http and https) and, with OPTIONS, "*".
Target parse_target(std::string_view target, std::string_view method);

/// uri-host [":" port] without userinfo. The host may be empty, as that of a Host field may (RFC 9110 7.2).
bool is_valid_authority(std::string_view authority);

}  // namespace noren::proxy::http
