#pragma once
// Response heads as uvicorn writes them: lower-case names, no more than needed.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sim {

enum class Framing { chunked, length, close };

struct ResponseHead {
    unsigned status = 200;
    std::string_view type = "application/json";
    Framing framing = Framing::length;
    std::uint64_t length = 0;          ///< with Framing::length
    std::string_view request_id = {};  ///< empty = no such field
    std::string_view extra = {};       ///< whole field lines, each with CRLF
    bool close = false;                ///< `connection: close`
};

std::string to_string(const ResponseHead& head);

}  // namespace sim
