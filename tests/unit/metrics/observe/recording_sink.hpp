#pragma once
// What a framer told, as text, so that whole runs can be compared.

#include <string>
#include <string_view>
#include <vector>

#include "metrics/observe/event_sink.hpp"

namespace noren::metrics::testing {

/// Events as "[start,end) data", in order; of one that had the name "error" with a "!" before the data.
class RecordingSink final : public EventSink {
  public:
    void data(std::string_view piece) override { data_ += piece; }

    void event_end(std::uint64_t start, std::uint64_t end, bool named_error) override {
        events.push_back({start, end, (named_error ? "!" : "") + data_});
        data_.clear();
    }

    void event_end_moved() override { ++events.at(events.size() - 1).end; }

    std::vector<std::string> written() const {
        std::vector<std::string> lines;
        for (const Event& e : events)
            lines.push_back("[" + std::to_string(e.start) + "," + std::to_string(e.end) + ") " + e.data);
        return lines;
    }

    struct Event {
        std::uint64_t start, end;
        std::string data;
    };
    std::vector<Event> events;

  private:
    std::string data_;
};

/// What a framer finds in a body fed in pieces of so many bytes, to its end.
template <typename Framer>
std::vector<std::string> framed_in_pieces(std::string_view body, std::size_t size) {
    Framer framer;
    RecordingSink sink;
    for (std::size_t at = 0; at < body.size(); at += size)
        framer.feed(body.substr(at, size), sink);
    framer.finish(sink);
    return sink.written();
}

template <typename Framer>
std::vector<std::string> framed_cut_at(std::string_view body, std::size_t cut) {
    Framer framer;
    RecordingSink sink;
    framer.feed(body.substr(0, cut), sink);
    framer.feed(body.substr(cut), sink);
    framer.finish(sink);
    return sink.written();
}

}  // namespace noren::metrics::testing
