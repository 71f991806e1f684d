#pragma once
// HTTP/1 messages read from whole texts as RFC 9110 and RFC 9112 say, to judge noren's reader by and what it
// sends on: no table, no state and no line of code shared with it. Where the RFCs leave a choice, noren's is
// named in a comment.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace noren::test {

enum class Verdict {
    whole,
    unfinished,  ///< more bytes may make a message of it
    refused,     ///< no message, or one that can be read in two ways
};

using FieldLines = std::vector<std::pair<std::string, std::string>>;

struct Reading {
    Verdict verdict = Verdict::refused;
    std::string start_line;
    int minor = 1;  ///< HTTP/1.minor
    FieldLines fields;
    std::string body;
    FieldLines trailers;
    bool has_extensions = false;  ///< on some chunk
    std::size_t size = 0;         ///< of the message

    /// Of all lines with this name, in lower case.
    std::vector<std::string> values(std::string_view name) const;
};

/// Origin-form and "*" only.
Reading read_request(std::string_view text);

/// text: all that came before the connection was closed.
Reading read_response(std::string_view text, std::string_view method);

}  // namespace noren::test
