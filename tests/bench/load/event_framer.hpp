#pragma once
// Cuts a streamed body into its events: server-sent events (HTML standard, section 9.2.6) or one JSON
// document per line. Sans-IO, and no code of the proxy's, so that the two do not share a misunderstanding.

#include <functional>
#include <string>
#include <string_view>

namespace load {

struct Event {
    std::string_view name;  ///< of the SSE event field, else empty
    std::string_view data;  ///< data lines joined; never blank
};

class EventFramer {
  public:
    enum class Kind : unsigned char { sse, ndjson };
    using OnEvent = std::function<void(const Event&)>;

    EventFramer(Kind kind, OnEvent on_event) : kind_(kind), on_event_(std::move(on_event)) {}

    void feed(std::string_view bytes);
    /// The body is over: an event that only lacks its blank line or line end is one all the same (engines and
    /// their benchmark clients agree on that, the standard would drop it).
    void finish();

  private:
    void line();
    void sse_line(std::string_view text);
    void dispatch();

    Kind kind_;
    OnEvent on_event_;
    std::string line_;  ///< not yet whole
    bool after_cr_ = false, first_line_ = true;
    std::string data_, name_;  ///< of the SSE event so far
    bool has_data_ = false;
};

}  // namespace load
