#pragma once
// The name of an object's member, in a form that is cheap to look for.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace noren::metrics {

/// Length, first, middle and last byte. Two keys of one schema never have the same mark (JsonSchema sees to
/// it), so that among them the mark alone decides.
constexpr std::uint32_t key_mark(std::string_view key) {
    if (key.empty()) return 0;
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(key[i])}; };
    return static_cast<std::uint32_t>(key.size() & 0xff) << 24 | byte(0) << 16 | byte(key.size() / 2) << 8 |
           byte(key.size() - 1);
}

/// A key that somebody looks for. Written as a literal: its mark is computed by the compiler.
class JsonKey {
  public:
    consteval JsonKey(const char* text) : JsonKey(std::string_view(text)) {}
    /// text: of static storage.
    constexpr explicit JsonKey(std::string_view text) : text_(text), mark_(key_mark(text)) {}

    constexpr std::string_view text() const { return text_; }
    constexpr std::uint32_t mark() const { return mark_; }
    /// One of 64 bits, so that an object can tell at a glance most of the keys it does not have.
    constexpr std::uint64_t bit() const { return std::uint64_t{1} << (mark_ * 0x9e3779b1U >> 26); }

  private:
    std::string_view text_;
    std::uint32_t mark_;
};

/// Some keys, to ask whether an object may have one of them.
class JsonKeySet {
  public:
    consteval JsonKeySet(std::initializer_list<JsonKey> keys) {
        for (const JsonKey key : keys)
            bits_ |= key.bit();
    }
    constexpr std::uint64_t bits() const { return bits_; }

  private:
    std::uint64_t bits_ = 0;
};

}  // namespace noren::metrics
