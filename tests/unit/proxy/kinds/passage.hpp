#pragma once
// A message's way through noren without a socket: read, framed, written anew. And the ways to spoil a message
// byte by byte.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace noren::test {

struct Passage {
    bool is_whole = false;     ///< the message was accepted, to its end
    std::string wire;          ///< what went on to the other side by then
    std::size_t consumed = 0;  ///< of the input
};

using Pieces = std::vector<std::string_view>;

/// A client's bytes on their way to the engine, in the pieces in which they arrive.
Passage through_to_engine(const Pieces& pieces);

/// An engine's bytes, up to its close, on their way to a client that has asked with this method.
Passage through_to_client(const Pieces& pieces, std::string_view method);

Pieces bytewise(std::string_view text);

/// The text with every byte value put in the place of each byte and in front of it, and with each byte left
/// out.
template <typename Visit>
void for_each_spoiled(const std::string& text, Visit&& visit) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (int value = 0; value < 256; ++value) {
            std::string replaced = text;
            replaced[at] = static_cast<char>(value);
            visit(replaced);
            visit(std::string(text).insert(at, 1, static_cast<char>(value)));
        }
        visit(std::string(text).erase(at, 1));
    }
}

/// Holds the passage of a request, in one piece and byte by byte, against what the RFCs make of it: taken as
/// exactly what it is, and sent on so that it can be read in that way only, or not sent on as a whole
/// request. Fails the test case otherwise. True: it was taken.
bool is_taken_as_read(const std::string& request);

/// Likewise an answer to this method.
bool is_taken_as_read(const std::string& response, std::string_view method);

}  // namespace noren::test
