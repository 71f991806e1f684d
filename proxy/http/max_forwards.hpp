#pragma once
// Max-Forwards (RFC 9110 7.6.2), by which an OPTIONS request asks a server on its way instead of the last
// one. The other method that has it, TRACE, is refused before anybody looks.

#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/http/head.hpp"

namespace noren::proxy::http {

struct MaxForwards {
    std::optional<std::uint64_t> value;  ///< 0: we are asked; empty: nothing is said, or the method has none
    std::optional<HeadError> error;
};

MaxForwards max_forwards(std::string_view method, const Fields& fields);

}  // namespace noren::proxy::http
