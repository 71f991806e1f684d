#pragma once
// One HTTP/1.1 answer as a strict client reads it (RFC 9112): status line and fields, body framing checked to
// the byte. Sans-IO, and no code of the proxy's, so that the two do not share a misunderstanding.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tests/bench/load/event_framer.hpp"

namespace load {

/// FNV-1a, 64 bits: the running value over no bytes yet.
inline constexpr std::uint64_t k_fnv_basis = 0xcbf29ce484222325ULL;

class AnswerReader {
  public:
    /// Called for every event of a body whose type says that it is a stream of events.
    explicit AnswerReader(EventFramer::OnEvent on_event) : on_event_(std::move(on_event)) {}

    /// Bytes as received. False: they break the protocol; problem() says how.
    bool feed(std::string_view bytes);
    /// The server closed. True if that is a proper end.
    bool closed();

    bool whole() const { return state_ == State::whole; }
    bool head_known() const { return head_known_; }
    int status() const { return status_; }
    /// Value of a field by its lower-case name, several of them joined with commas; empty = absent.
    std::string_view field(const std::string& lower_case_name) const;
    /// The same of the trailer section, which is known once the answer is whole.
    std::string_view trailer(const std::string& lower_case_name) const;
    /// Another request may go over this connection.
    bool keeps_alive() const;
    bool is_event_stream() const { return events_.has_value(); }
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

    using Fields = std::map<std::string, std::string>;

    bool fail(std::string problem);
    bool line(std::string_view& bytes);
    bool read_head();
    bool read_framing();
    bool read_chunk_size();
    bool read_trailer();
    void take_body(std::string_view& bytes);
    bool take_chunk_end(char next);
    void body(std::string_view bytes);
    void finish();

    EventFramer::OnEvent on_event_;
    State state_ = State::head;
    std::string buffer_;  ///< head, size line or trailer bytes not yet whole
    std::uint64_t left_ = 0;
    int status_ = 0;
    bool head_known_ = false, old_version_ = false, ended_by_close_ = false;
    Fields fields_, trailers_;
    std::optional<EventFramer> events_;
    std::string document_;
    std::string problem_;
    std::uint64_t body_bytes_ = 0;
    std::uint64_t body_hash_ = k_fnv_basis;
};

}  // namespace load
