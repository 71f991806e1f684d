#pragma once
// Server-sent events as the HTML standard frames them (section 9.2.6): an optional BOM, lines ended by LF, CR
// or CRLF, a blank line ends an event. Of the fields only data and event mean something here. Sans-IO, no
// buffer.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "metrics/observe/event_sink.hpp"

namespace noren::metrics {

class SseFramer {
  public:
    void feed(std::string_view bytes, EventSink& sink);

    /// The body is over. An event without its blank line counts if it has data: it was sent.
    void finish(EventSink& sink);

    /// Would find the same in whatever follows.
    bool operator==(const SseFramer&) const = default;

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
    std::array<char, 6> name_{};
    std::size_t name_size_ = 0;  ///< may exceed what name_ holds
    std::array<char, 8> event_name_{};
    std::size_t event_name_size_ = 0;
    bool has_data_ = false;
    std::uint64_t position_ = 0;
    std::uint64_t event_start_ = 0;
};

}  // namespace noren::metrics
