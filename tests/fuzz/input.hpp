#pragma once
// What every target needs: the fuzzer's bytes as choices and text, and a check that says what broke.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fuzz {

/// Ends the run, with the place, when a promise is broken.
inline void expect(bool kept, const char* promise) {
    if (kept) return;
    std::fprintf(stderr, "broken promise: %s\n", promise);
    std::abort();
}

class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    /// 0..255, from the front; 0 when there is nothing left.
    std::uint8_t byte() {
        if (rest_.empty()) return 0;
        const auto value = static_cast<std::uint8_t>(rest_.front());
        rest_.remove_prefix(1);
        return value;
    }
    std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
};

/// Calls feed(piece) with the text in pieces whose sizes follow from the seed, 1..16 bytes, seldom more.
template <typename Feed>
void in_pieces(std::string_view text, std::uint32_t seed, Feed&& feed) {
    while (!text.empty()) {
        seed = seed * 1664525 + 1013904223;
        const std::size_t wanted = (seed >> 28) == 0 ? 1 + (seed >> 16) % 512 : 1 + (seed >> 24) % 16;
        const std::string_view piece = text.substr(0, wanted);
        text.remove_prefix(piece.size());
        feed(piece);
    }
}

}  // namespace fuzz
