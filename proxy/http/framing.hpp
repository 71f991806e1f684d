#pragma once
// Where a message body ends (RFC 9112 section 6), with one answer or none: what two readers could frame in
// two ways is refused on both sides.

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "proxy/http/head.hpp"

namespace noren::proxy::http {

enum class BodyKind : unsigned char {
    none,         ///< no body at all
    length,       ///< exactly so many bytes
    chunked,      ///< chunks up to the one of size 0
    until_close,  ///< an answer that ends with its connection
};

struct Framing {
    BodyKind kind = BodyKind::none;
    std::uint64_t length = 0;  ///< with BodyKind::length

    /// At least one byte follows the head, or may follow.
    bool has_body() const { return kind != BodyKind::none && (kind != BodyKind::length || length > 0); }
};

/// Errors have the status to answer with.
std::variant<Framing, HeadError> request_framing(const RequestHead& head);

/// method: of the request that is answered. Errors have status 502.
std::variant<Framing, HeadError> response_framing(const ResponseHead& head, std::string_view method);

/// RFC 9112 9.3: may the connection carry another message after this one?
bool keeps_alive(const Fields& fields, int minor);

/// Decimal digits only, below 2^63.
std::optional<std::uint64_t> parse_length(std::string_view text);

/// The first content coding that changes a body, on whatever line it is listed; empty: the body is as it is.
std::string_view content_coding(const Fields& fields);

}  // namespace noren::proxy::http
