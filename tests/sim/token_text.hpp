#pragma once
// The text the simulated engine generates, as a pure function of (request id, choice, token index).
//
// A client that knows its request id (header `x-request-id`, echoed in the answer) can compute what every
// token must have been, so a load tool can prove that a relay lost, doubled, moved or changed nothing. The
// vocabulary holds what breaks careless relays and parsers: quotes, backslashes, line ends, multi-byte
// characters, and text that looks like the stream's own framing.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sim {

inline constexpr std::array<std::string_view, 32> k_vocabulary = {" rain",
                                                                  " on",
                                                                  " the",
                                                                  " tin",
                                                                  " roof",
                                                                  ",",
                                                                  " and",
                                                                  " steam",
                                                                  " from",
                                                                  " bowls",
                                                                  ".",
                                                                  "\n",
                                                                  " \"so\"",
                                                                  " back\\",
                                                                  " na\xC3\xAFve",
                                                                  " \xE6\x9A\x96\xE7\xB0\xBE",
                                                                  " \xF0\x9F\x8D\x9C",
                                                                  " data:",
                                                                  " [DONE]",
                                                                  " {\"a\":1}",
                                                                  "\n\n",
                                                                  "\t",
                                                                  " <b>",
                                                                  " &",
                                                                  " 42",
                                                                  " event: error",
                                                                  " a\r\nb",
                                                                  " null",
                                                                  " of",
                                                                  " salt",
                                                                  " again",
                                                                  "!"};

/// FNV-1a, 64 bits (Fowler, Noll, Vo); `hash` continues a running value.
inline constexpr std::uint64_t k_fnv_basis = 0xcbf29ce484222325ULL;
constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = k_fnv_basis) {
    for (char c : bytes) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3ULL;
    }
    return hash;
}

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): neighbouring inputs give unrelated outputs.
constexpr std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/// What all text of one request is derived from.
constexpr std::uint64_t stream_key(std::string_view request_id) {
    return fnv1a(request_id);
}

/// Token `index` (from 0) of choice `choice` (from 0).
constexpr std::string_view token_text(std::uint64_t key, std::uint32_t choice, std::uint32_t index) {
    const std::uint64_t place = (static_cast<std::uint64_t>(choice) << 32) | index;
    return k_vocabulary[mix(key ^ mix(place)) % k_vocabulary.size()];
}

/// The text of one event: tokens [first, first + count). With `bytes` > 0 (request header `x-sim-bytes`) it
/// is instead exactly that many ASCII bytes: the first index, a colon, then letters derived from it.
inline std::string slice_text(std::uint64_t key, std::uint32_t choice, std::uint32_t first,
                              std::uint32_t count, std::uint32_t bytes = 0) {
    std::string text;
    if (bytes == 0) {
        for (std::uint32_t i = 0; i < count; ++i)
            text += token_text(key, choice, first + i);
        return text;
    }
    text = std::to_string(first) + ':';
    std::uint64_t letters = 0;
    for (std::uint32_t i = 0; text.size() < bytes; ++i) {
        letters = i % 8 == 0 ? mix(key ^ mix(first) ^ i) : letters >> 8;
        text += static_cast<char>('a' + (letters & 0xff) % 26);
    }
    text.resize(bytes);
    return text;
}

/// What the text of a stamped event begins with (request header `x-sim-stamp`): an @ and k_stamp_digits
/// digits, which become CLOCK_MONOTONIC nanoseconds right before the write.
inline constexpr std::string_view k_unstamped = "@00000000000000000000";
inline constexpr std::size_t k_stamp_digits = k_unstamped.size() - 1;

/// All text of one choice when its tokens went out `per_event` at a time.
inline std::string whole_text(std::uint64_t key, std::uint32_t choice, std::uint32_t tokens,
                              std::uint32_t per_event = 1, std::uint32_t bytes = 0) {
    std::string text;
    for (std::uint32_t first = 0; first < tokens; first += per_event) {
        const std::uint32_t count = tokens - first < per_event ? tokens - first : per_event;
        text += slice_text(key, choice, first, count, bytes);
    }
    return text;
}

}  // namespace sim
