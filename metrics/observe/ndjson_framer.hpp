#pragma once
// Newline-delimited JSON: one document per LF, a last line without one counts. Sans-IO, no buffer.

#include <cstdint>
#include <string_view>

#include "metrics/observe/event_sink.hpp"

namespace noren::metrics {

class NdjsonFramer {
  public:
    void feed(std::string_view bytes, EventSink& sink);
    void finish(EventSink& sink);

  private:
    void line_bytes(std::string_view bytes, EventSink& sink);
    void end_line(EventSink& sink);

    std::uint64_t position_ = 0;
    std::uint64_t line_start_ = 0;
    bool line_begun_ = false;
    /// A control character that is a blank if the line ends here, and an error if it does not.
    std::string_view held_;
};

}  // namespace noren::metrics
