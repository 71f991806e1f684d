#pragma once
// Chunked bodies (RFC 9112 section 7.1), read strictly from bytes that come in pieces. The scanner checks the
// framing and says which bytes are payload; whether a chunk line is plain, so that the engine's own framing
// may be passed on as it came, it says as well.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/http/head.hpp"

namespace noren::proxy::http {

/// Sans-IO, no allocation but for lines cut between two reads and for trailers.
class ChunkScanner {
  public:
    ChunkScanner() = default;
    ChunkScanner(const ChunkScanner&) = delete;  // trailers() views memory of this very object
    ChunkScanner& operator=(const ChunkScanner&) = delete;

    enum class Kind : unsigned char {
        size_line,  ///< a chunk's size line; `size` is set
        payload,    ///< bytes of a chunk's data
        data_end,   ///< the CRLF behind a chunk's data, or a part of it
        trailers,   ///< the trailer section with its empty line, whole; the body is over
        more,       ///< nothing to be had before more bytes come (a cut line is kept inside)
        error,      ///< malformed; the scanner is of no more use
    };
    struct Step {
        Kind kind = Kind::more;
        std::size_t consumed = 0;  ///< bytes of the input that are done with
        std::string_view bytes;    ///< payload: a view of the input. size_line: the line with its CRLF.
        bool plain = true;         ///< size_line: hex digits and CRLF only, fit to be passed on as it came
        std::uint64_t size = 0;    ///< size_line: of the chunk, 0 = the last
    };

    /// Reads one thing at the front of the input.
    Step next(std::string_view in);

    bool done() const { return state_ == State::done; }
    /// After done(): valid field lines without those that must not come late, as views of the scanner's
    /// memory.
    const Fields& trailers() const;

  private:
    enum class State : unsigned char { size_line, payload, data_end, trailers, done, failed };

    Step read_size_line(std::string_view in);
    Step read_payload(std::string_view in);
    Step read_data_end(std::string_view in);
    Step read_trailers(std::string_view in);
    Step fail();
    /// A whole line ended by CRLF from `cut_` and the input; empty when there is none yet.
    std::optional<std::string_view> take_line(std::string_view in, std::size_t& consumed);

    State state_ = State::size_line;
    std::uint64_t left_ = 0;  ///< payload bytes of this chunk still to come
    bool cr_seen_ = false;    ///< half of the CRLF behind a chunk's data
    bool cut_used_ = false;   ///< the last line was put together in cut_
    bool line_failed_ = false;
    std::string cut_;  ///< a size line that began in an earlier read
    struct Trailers {
        std::string text;
        Fields fields;
    };
    std::unique_ptr<Trailers> trailers_;  ///< from the last chunk on
};

/// Fields that must not be taken from a trailer section: framing, routing, authentication, control of how an
/// answer or its content is to be taken (RFC 9110 6.5.1).
bool is_forbidden_trailer(std::string_view name);

}  // namespace noren::proxy::http
