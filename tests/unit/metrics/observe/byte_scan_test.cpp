#include "metrics/observe/byte_scan.hpp"

#include <algorithm>
#include <random>
#include <string>

#include <catch2/catch.hpp>

using namespace noren::metrics;

namespace {

bool is_special(char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20;
}
bool ends_line(char c) {
    return c == '\n' || c == '\r';
}

/// The same as going through it byte by byte, from every place of the text to every other.
template <typename Found, typename Meant>
void check_everywhere(const std::string& text, Found found, Meant meant) {
    for (std::size_t begin = 0; begin <= text.size(); ++begin) {
        for (std::size_t end = begin; end <= text.size(); ++end) {
            const char* const from = text.data() + begin;
            const char* const to = text.data() + end;
            INFO("from " << begin << " to " << end);
            REQUIRE(found(from, to) == std::find_if(from, to, meant));
        }
    }
}

template <typename Block>
void check_block(const std::string& text) {
    check_everywhere(text, find_string_special<Block>, is_special);
    check_everywhere(text, find_line_end<Block>, ends_line);
}

}  // namespace

TEST_CASE("byte scan: as byte by byte, wherever it begins and ends") {
    std::mt19937 random(7);
    const std::string few = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\\\n\r\t\x1f 0\x7f\xff";
    for (int round = 0; round < 20; ++round) {
        std::string text(150, 'a');
        for (char& c : text)
            c = few[random() % few.size()];
        INFO("round " << round);
        check_block<ByteBlock>(text);
        check_block<WordBlock>(text);
        std::replace(text.begin(), text.end(), 'a', '7');
        check_everywhere(text, find_digits_end, [](char c) { return !is_digit(c); });
    }
}

TEST_CASE("byte scan: each of the 256 bytes is what it is") {
    for (int byte = 0; byte < 256; ++byte) {
        const auto c = static_cast<char>(byte);
        for (std::size_t place = 0; place < 40; ++place) {
            std::string text(40, 'x');
            text[place] = c;
            INFO("byte " << byte << " at " << place);
            const char* const begin = text.data();
            const char* const end = begin + text.size();
            const char* const at = begin + place;
            REQUIRE(find_string_special<ByteBlock>(begin, end) == (is_special(c) ? at : end));
            REQUIRE(find_string_special<WordBlock>(begin, end) == (is_special(c) ? at : end));
            REQUIRE(find_line_end<ByteBlock>(begin, end) == (ends_line(c) ? at : end));
            REQUIRE(find_line_end<WordBlock>(begin, end) == (ends_line(c) ? at : end));
            std::string digits(40, '5');
            digits[place] = c;
            REQUIRE(find_digits_end(digits.data(), digits.data() + 40) ==
                    (is_digit(c) ? digits.data() + 40 : digits.data() + place));
        }
    }
}
