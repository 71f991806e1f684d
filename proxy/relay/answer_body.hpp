#pragma once
// An answer's body on its way to the client: the engine's own framing is passed on as it came where it is
// plain, the same bytes from the same buffer; what must change (an odd chunk line, a client that knows no
// chunks) is rewritten.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/http/chunks.hpp"
#include "proxy/http/framing.hpp"

namespace noren::proxy::relay {

/// Sees body payload as it passes.
class PayloadSink {
  public:
    virtual void payload(std::string_view piece) noexcept = 0;

  protected:
    ~PayloadSink() = default;
};

/// Sans-IO. One piece of input, as one read brought it, in two steps: pass() says what goes to the client,
/// then, when that is on its way, show() lets an observer see the payload of the same piece.
class AnswerBody {
  public:
    enum class Status : unsigned char {
        running,
        done,       ///< whole; bytes behind it belong to no answer
        malformed,  ///< what the framing of the rest is cannot be known
    };
    struct Passed {
        Status status = Status::running;
        std::string_view
            wire;  ///< for the client; a view of the input, or of memory valid until the next pass()
        std::size_t consumed = 0;  ///< of the input; less than all of it: surplus
    };

    /// dechunk: the client speaks HTTP/1.0 and gets the payload only.
    AnswerBody(const http::Framing& framing, bool dechunk);

    Passed pass(std::string_view in);
    /// in: what the last pass() was given.
    void show(std::string_view in, PayloadSink& sink) const noexcept;

    /// The engine has closed the connection. done, or malformed for a body that was cut.
    Status at_close();
    Status status() const { return status_; }

  private:
    Passed pass_chunked(std::string_view in);

    http::Framing framing_;
    bool dechunk_;
    Status status_;
    std::uint64_t left_;
    http::ChunkScanner chunks_;
    std::string rewritten_;
    struct Range {
        std::size_t begin, size;
    };
    std::vector<Range>
        payloads_;  ///< of the last pass(); keeps its memory, so a steady stream allocates nothing
};

}  // namespace noren::proxy::relay
