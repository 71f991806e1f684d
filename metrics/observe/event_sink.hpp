#pragma once
// What a framer tells about the events it finds in a stream. Data comes in pieces as the bytes do.

#include <cstdint>
#include <string_view>

namespace noren::metrics {

class EventSink {
  public:
    virtual void data(std::string_view piece) = 0;

    /// The event is over; its bytes are [start, end) of the body. named_error: by SSE's `event: error`.
    virtual void event_end(std::uint64_t start, std::uint64_t end, bool named_error) = 0;

    /// The last event ended one byte later than was said: the CR that ended it had an LF behind it.
    virtual void event_end_moved() = 0;

  protected:
    ~EventSink() = default;
};

}  // namespace noren::metrics
