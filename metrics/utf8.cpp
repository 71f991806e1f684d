#include "metrics/utf8.hpp"

namespace noren::metrics {

Utf8Step utf8_step(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return {1, true};
    if (lead < 0xc2 || lead > 0xf4) return {1, false};
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    // The second byte rules out overlong forms, surrogates and what is beyond U+10FFFF.
    const unsigned char low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (std::size_t i = 1; i < length; ++i) {
        const bool fits =
            i < text.size() && (i == 1 ? byte(i) >= low && byte(i) <= high : (byte(i) & 0xc0) == 0x80);
        if (!fits) return {i, false};
    }
    return {length, true};
}

std::string to_valid_utf8(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        out.append(step.valid ? text.substr(0, step.size) : std::string_view("\xef\xbf\xbd"));
        text.remove_prefix(step.size);
    }
    return out;
}

}  // namespace noren::metrics
