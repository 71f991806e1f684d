#pragma once
// A request's body on its way to the engine: taken out of whatever chunks the client chose, put into one
// clean framing.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/chunks.hpp"
#include "proxy/http/framing.hpp"

namespace noren::proxy::relay {

/// Sans-IO.
class RequestBody {
  public:
    enum class Status : unsigned char { ok, malformed, too_large };

    struct Step {
        Status status = Status::ok;
        std::size_t consumed = 0;  ///< of the input
        std::string_view
            wire;  ///< for the engine; a view of the input or of memory valid until the next step
        std::string_view payload;  ///< the body bytes among them, for who wants to look
    };

    /// max_bytes: 0 = unlimited. A declared length is checked by the caller before anything is sent.
    RequestBody(const http::Framing& framing, std::uint64_t max_bytes);

    /// Takes what it can from the front of the input; consumed 0 with status ok: needs more bytes, or is
    /// done.
    Step next(std::string_view in);
    bool done() const { return done_; }

  private:
    Step next_chunked(std::string_view in);

    http::Framing framing_;
    std::uint64_t max_bytes_;
    std::uint64_t taken_ = 0;
    bool done_;
    http::ChunkScanner chunks_;
    std::string framed_;
};

}  // namespace noren::proxy::relay
