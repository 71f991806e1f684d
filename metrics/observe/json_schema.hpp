#pragma once
// Which part of a JSON document is kept.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "metrics/observe/json_key.hpp"

namespace noren::metrics {

/// What to keep of an object with these members. Arrays are transparent: their elements are kept by the
/// array's own schema. A member without a schema of its own is kept as a leaf.
class JsonSchema {
  public:
    struct Member {
        JsonKey key;
        const JsonSchema* schema;  ///< of its members, if it turns out to be an object or an array of them
        /// Kept only if it is an array, and of that only how many elements it has and whether one is a
        /// number: a hundred thousand token ids leave one value behind, a prompt nothing.
        bool counted = false;
    };

    static constexpr std::size_t k_max_key = 64;  ///< all keys are shorter

    JsonSchema() = default;
    /// Throws std::logic_error if a key is too long, or two have the same mark.
    explicit JsonSchema(std::vector<Member> members);

    const Member* find(std::string_view key) const {
        const std::uint32_t mark = key_mark(key);
        const std::uint8_t place = places_[slot(mark)];
        if (place == 0) return nullptr;
        const Member& member = members_[place - 1U];
        return member.key.mark() == mark && is_same(member.key.text(), key) ? &member : nullptr;
    }

  private:
    /// Of two keys with the same mark. Nearly every key of a token event is compared once; a call of memcmp
    /// would be dearer than the rest of finding it.
    static bool is_same(std::string_view a, std::string_view b) {
        if (a.size() != b.size()) return false;
        const std::size_t size = a.size();
        if (size <= 3) return true;  // the mark is the whole key
        if (size < 8)
            return word<std::uint32_t>(a, 0) == word<std::uint32_t>(b, 0) &&
                   word<std::uint32_t>(a, size - 4) == word<std::uint32_t>(b, size - 4);
        if (size <= 16)
            return word<std::uint64_t>(a, 0) == word<std::uint64_t>(b, 0) &&
                   word<std::uint64_t>(a, size - 8) == word<std::uint64_t>(b, size - 8);
        return a == b;
    }
    template <typename Word>
    static Word word(std::string_view text, std::size_t at) {
        Word value;
        std::memcpy(&value, text.data() + at, sizeof value);
        return value;
    }

    bool place_all();
    std::uint32_t slot(std::uint32_t mark) const { return mark * factor_ >> 24; }

    std::vector<Member> members_;
    std::uint32_t factor_ = 0x9e3779b1;       ///< gives every key a slot of its own
    std::array<std::uint8_t, 256> places_{};  ///< by slot: 1 + index of its member, 0: none
};

}  // namespace noren::metrics
