#pragma once
// Newline-delimited JSON: one document per LF, a last line without one counts. Sans-IO, no buffer.

#include <cstdint>
#include <string_view>

#include "metrics/observe/event_sink.hpp"

namespace noren::metrics {

class NdjsonFramer {
  public:
    void feed(std::string_view bytes, EventSink& sink) {
        while (!bytes.empty()) {
            const std::size_t lf = bytes.find('\n');
            const std::string_view line = bytes.substr(0, lf);
            if (!line.empty()) sink.data(line);
            position_ += line.size();
            bytes.remove_prefix(line.size());
            if (lf == std::string_view::npos) return;
            ++position_;
            bytes.remove_prefix(1);
            sink.event_end(line_start_, position_, false);
            line_start_ = position_;
        }
    }

    void finish(EventSink& sink) {
        if (position_ > line_start_) sink.event_end(line_start_, position_, false);
        line_start_ = position_;
    }

  private:
    std::uint64_t position_ = 0;
    std::uint64_t line_start_ = 0;
};

}  // namespace noren::metrics
