#pragma once
// The engine's metrics page as it came: a whole answer, shared by all who asked for it.

#include <memory>
#include <string>
#include <string_view>

#include "metrics/clock.hpp"
#include "proxy/http/framing.hpp"
#include "proxy/http/head.hpp"

namespace noren::proxy::engine_page {

/// Immutable once it is given out. Stays where it is: head is views of text.
struct Page {
    Page() = default;
    Page(const Page&) = delete;
    Page& operator=(const Page&) = delete;

    std::string text;         ///< of the head
    http::ResponseHead head;  ///< without x-request-id, which was that of the fetch
    http::Framing framing;    ///< none, or the body's length
    std::string body;         ///< payload bytes, in whatever content coding they came
};

enum class Ending : unsigned char {
    whole,
    unreachable,  ///< no connection
    tls,          ///< one that was not to be trusted
    broken,       ///< lost before the page was whole
    late,         ///< not whole in time
    malformed,    ///< not HTTP, or ambiguous
    too_large,    ///< more than engine_metrics.max_size
};

/// As a label; "ok" if it is whole.
std::string_view word_of(Ending ending);

/// How a fetch ended.
struct Outcome {
    Ending ending = Ending::broken;
    std::string_view detail;           ///< of a failure, a sentence of static storage
    std::shared_ptr<const Page> page;  ///< set exactly if it is whole, whatever its status
    bool ours = false;                 ///< noren lacked what it takes: not the engine's doing
};

}  // namespace noren::proxy::engine_page
