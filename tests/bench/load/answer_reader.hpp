#pragma once
// One HTTP/1.1 answer as a strict client reads it: status line and fields, body framing checked to the byte,
// events cut out of the body. Sans-IO, and no code of the proxy's, so that the two do not share a
// misunderstanding.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace load {

class AnswerReader {
  public:
    /// An event's data (SSE: data lines joined; NDJSON: a line).
    using OnEvent = std::function<void(std::string_view data)>;

    explicit AnswerReader(OnEvent on_event) : on_event_(std::move(on_event)) {}

    /// Bytes as received. False: they break the protocol; problem() says how.
    bool feed(std::string_view bytes);
    /// The server closed. True if that is a proper end.
    bool closed();

    bool whole() const { return state_ == State::whole; }
    bool head_known() const { return state_ != State::head; }
    int status() const { return status_; }
    std::string_view field(const std::string& lower_case_name) const;
    bool keeps_alive() const;
    bool is_event_stream() const { return sse_ || ndjson_; }
    const std::string& problem() const { return problem_; }
    /// The body, if it is no event stream.
    const std::string& document() const { return document_; }
    std::uint64_t body_bytes() const { return body_bytes_; }
    std::uint64_t body_hash() const { return body_hash_; }

  private:
    enum class State : unsigned char {
        head,
        length,
        until_close,
        chunk_size,
        chunk_data,
        chunk_end,
        trailers,
        whole,
        broken
    };

    bool fail(std::string problem);
    bool read_head();
    bool read_chunk_size();
    void body(std::string_view bytes);
    void sse_line(std::string_view line);
    void end_of_body();
    void finish();

    OnEvent on_event_;
    State state_ = State::head;
    std::string buffer_;  ///< head, size line or trailer bytes not yet whole
    std::uint64_t left_ = 0;
    int status_ = 0;
    std::map<std::string, std::string> fields_;
    bool sse_ = false, ndjson_ = false;
    std::string line_;  ///< of the event stream, not yet whole
    std::string data_;  ///< of the SSE event, so far
    bool has_data_ = false;
    std::string document_;
    std::string problem_;
    std::uint64_t body_bytes_ = 0;
    std::uint64_t body_hash_ = 0xcbf29ce484222325ULL;  ///< FNV-1a, 64 bits
};

}  // namespace load
