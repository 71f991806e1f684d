#pragma once
// Server-sent events as the HTML standard frames them (section 9.2.6): an optional BOM, lines ended by LF, CR
// or CRLF, a blank line ends an event. Only the fields data and event count here. Sans-IO, no buffer.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/observe/event_sink.hpp"

namespace noren::metrics {

/// A word of which only so much is kept as it takes to tell it from others.
template <std::size_t n>
class WordStart {
  public:
    void clear() { *this = {}; }
    void append(std::string_view bytes) {
        std::copy_n(bytes.begin(), std::min(bytes.size(), n - std::min(size_, n)),
                    text_.begin() + std::min(size_, n));
        size_ += bytes.size();
    }
    bool is(std::string_view word) const {
        return size_ == word.size() && std::equal(word.begin(), word.end(), text_.begin());
    }

  private:
    std::array<char, n> text_{};
    std::size_t size_ = 0;  ///< of the whole word
};

class SseFramer {
  public:
    void feed(std::string_view bytes, EventSink& sink);

    /// The body is over. An event without its blank line counts if it has data: it was sent.
    void finish(EventSink& sink);

  private:
    enum class Part : unsigned char {
        bom,    ///< the body's first bytes may be a byte order mark
        name,   ///< a line's field name
        space,  ///< right behind the colon, where one space is dropped
        value,
    };
    enum class Field : unsigned char { other, data, event };

    std::size_t scan_name(std::string_view bytes, EventSink& sink);
    void name_bytes(std::string_view bytes);
    Field take_field();
    void begin_value(Field field, EventSink& sink);
    void value_bytes(std::string_view bytes, EventSink& sink);
    void end_line(char c, EventSink& sink);
    void end_crlf(EventSink& sink);
    void end_event(EventSink& sink);
    std::size_t skip_bom(std::string_view bytes);

    Part part_ = Part::bom;
    std::size_t bom_seen_ = 0;
    Field field_ = Field::other;
    bool line_empty_ = true;
    bool after_cr_ = false;     ///< the last byte was a CR: an LF now belongs to it
    bool ended_at_cr_ = false;  ///< and that CR ended an event
    WordStart<6> name_;
    WordStart<8> event_name_;
    bool has_data_ = false;
    std::uint64_t position_ = 0;
    std::uint64_t event_start_ = 0;
};

}  // namespace noren::metrics
