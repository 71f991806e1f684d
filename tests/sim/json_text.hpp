#pragma once
// Writing JSON by hand: the simulator imitates the exact spelling of each engine, which no JSON library
// keeps.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace sim {

enum class Escapes {
    plain,  ///< what JSON demands, UTF-8 as it is (Python's ensure_ascii=False, serde, nlohmann)
    go,     ///< also < > & as \u00XX (Go's encoding/json: Ollama)
};

/// `text` as a JSON string with its quotes.
std::string quoted(std::string_view text, Escapes escapes = Escapes::plain);

/// 16 digits, as the simulator spells its hashes.
std::string hex(std::uint64_t value);

namespace detail {
inline void append(std::string& out, std::string_view piece) {
    out += piece;
}
inline void append(std::string& out, std::integral auto number) {
    out += std::to_string(number);
}
}  // namespace detail

/// Strings and integers one after another.
template <typename... Pieces>
std::string concat(const Pieces&... pieces) {
    std::string out;
    (detail::append(out, pieces), ...);
    return out;
}

}  // namespace sim
