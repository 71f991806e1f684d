#pragma once
// Where a run of bytes that mean nothing ends. Sixteen bytes are looked at together (SSE2, which every x86-64
// has), or eight in a register elsewhere: most of a body is the insides of strings.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace noren::metrics {

/// Eight bytes.
class WordBlock {
  public:
    static constexpr std::ptrdiff_t k_size = 8;
    /// Which bytes are meant; of several only the first is exact.
    using Mask = std::uint64_t;

    explicit WordBlock(const char* at) {
        std::memcpy(&word_, at, sizeof word_);
        if constexpr (std::endian::native == std::endian::big) word_ = __builtin_bswap64(word_);
    }

    Mask equal(char c) const { return below(word_ ^ (k_ones * static_cast<unsigned char>(c)), 1); }
    Mask controls() const { return below(word_, 0x20); }
    static Mask either(Mask a, Mask b) { return a | b; }
    /// k_size: none.
    static std::ptrdiff_t first(Mask mask) { return std::countr_zero(mask) / 8; }

  private:
    static constexpr std::uint64_t k_ones = ~std::uint64_t{0} / 255;
    /// Sets the high bit of every byte below the limit, and maybe of some above the first such: a borrow.
    static Mask below(std::uint64_t word, unsigned limit) {
        return (word - k_ones * limit) & ~word & (k_ones * 0x80);
    }
    std::uint64_t word_ = 0;
};

#if defined(__SSE2__)

/// Sixteen bytes.
class VectorBlock {
  public:
    static constexpr std::ptrdiff_t k_size = 16;
    using Mask = __m128i;

    explicit VectorBlock(const char* at) : bytes_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))) {}

    Mask equal(char c) const { return _mm_cmpeq_epi8(bytes_, _mm_set1_epi8(c)); }
    Mask controls() const { return not_above(bytes_, 0x1f); }
    Mask digits() const { return not_above(_mm_sub_epi8(bytes_, _mm_set1_epi8('0')), 9); }
    static Mask either(Mask a, Mask b) { return _mm_or_si128(a, b); }
    static std::ptrdiff_t first(Mask mask) { return std::countr_zero(bits(mask) | 1U << k_size); }
    static std::ptrdiff_t first_other(Mask mask) { return std::countr_one(bits(mask)); }

  private:
    static Mask not_above(__m128i bytes, char most) {
        return _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(most)), bytes);
    }
    static unsigned bits(Mask mask) { return static_cast<unsigned>(_mm_movemask_epi8(mask)); }
    __m128i bytes_;
};
using ByteBlock = VectorBlock;

#else
using ByteBlock = WordBlock;
#endif

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// May c stand behind a backslash, and need no more than that?
constexpr bool is_simple_escape(char c) {
    switch (c) {
        case '"':
        case '\\':
        case '/':
        case 'b':
        case 'f':
        case 'n':
        case 'r':
        case 't':
            return true;
        default:
            return false;
    }
}

/// The first byte in [at, end) that is no digit.
inline const char* find_digits_end(const char* at, const char* end) {
#if defined(__SSE2__)
    for (; end - at >= VectorBlock::k_size; at += VectorBlock::k_size) {
        const auto first = VectorBlock::first_other(VectorBlock(at).digits());
        if (first < VectorBlock::k_size) return at + first;
    }
#endif
    while (at != end && is_digit(*at))
        ++at;
    return at;
}

/// The first byte in [at, end) that means something inside a JSON string: the quote, the backslash, and
/// controls, which are not allowed raw.
template <typename Block = ByteBlock>
inline const char* find_string_special(const char* at, const char* end) {
    for (; end - at >= Block::k_size; at += Block::k_size) {
        const Block block(at);
        const auto first =
            Block::first(Block::either(block.controls(), Block::either(block.equal('"'), block.equal('\\'))));
        if (first < Block::k_size) return at + first;
    }
    while (at != end && *at != '"' && *at != '\\' && static_cast<unsigned char>(*at) >= 0x20)
        ++at;
    return at;
}

/// The first CR or LF in [at, end).
template <typename Block = ByteBlock>
inline const char* find_line_end(const char* at, const char* end) {
    // Most lines are long: first four blocks at once.
    constexpr auto k_stride = 4 * Block::k_size;
    const auto ends = [](const char* block_at) {
        const Block block(block_at);
        return Block::either(block.equal('\n'), block.equal('\r'));
    };
    for (; end - at >= k_stride; at += k_stride) {
        const auto any =
            Block::either(Block::either(ends(at), ends(at + Block::k_size)),
                          Block::either(ends(at + 2 * Block::k_size), ends(at + 3 * Block::k_size)));
        if (Block::first(any) < Block::k_size) break;
    }
    for (; end - at >= Block::k_size; at += Block::k_size) {
        const auto first = Block::first(ends(at));
        if (first < Block::k_size) return at + first;
    }
    while (at != end && *at != '\n' && *at != '\r')
        ++at;
    return at;
}

}  // namespace noren::metrics
