#include "config/document.hpp"

#include <array>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>

#include "config/load.hpp"

namespace config = noren::config;

namespace {

/// The one mistake that makes a text unreadable.
std::string unreadable(std::string_view text) {
    const auto document = config::parse_document(text);
    const auto* mistake = std::get_if<config::Mistake>(&document);
    return mistake ? std::to_string(mistake->line) + ' ' + mistake->found : "readable";
}

std::string repeat(std::string_view part, std::size_t bytes) {
    std::string out;
    while (out.size() + part.size() <= bytes)
        out += part;
    return out;
}

std::string example() {
    std::ifstream in(NOREN_SOURCE_DIR "/config/noren.example.yaml");
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

}  // namespace

TEST_CASE("a document becomes a tree with lines") {
    const auto document = config::parse_document("a: 1\nb:\n  - \"x\"\n  - {c: }\n");
    const auto& root = std::get<config::Value>(document);
    using Kind = config::Value::Kind;
    REQUIRE(root.kind == Kind::map);
    REQUIRE(root.items.size() == 4);
    CHECK(root.items[1] == config::Value::scalar("1", 1, false));
    const auto& list = root.items[3];
    REQUIRE(list.kind == Kind::list);
    CHECK(list.items[0] == config::Value::scalar("x", 3, true));
    CHECK(list.items[1].line == 4);
    CHECK(list.items[1].items[1].kind == Kind::null);
}

TEST_CASE("broken YAML is told with its line") {
    CHECK(unreadable("a: b: c\n") == "1 a syntax error (illegal map value)");
    CHECK(unreadable("a: 1\nb:\n  c: 1\n   d: 2\n").starts_with("4 a syntax error"));
    CHECK(unreadable("a: 1\nb: [x\n").ends_with("a syntax error (end of sequence flow not found)"));
    CHECK(unreadable("a: 1\nb: \"x\nc: 2\n").ends_with("a syntax error (illegal EOF in scalar)"));
    CHECK(unreadable("a:\n\tb: 1\n") == "2 a tab");
    CHECK(unreadable("a:\n  \tb: 1\n   c: 2\n").find("a tab") != std::string::npos);
    CHECK(unreadable(" a: 1\nb: 2\n") == "2 more text after the end of the document");
    CHECK(unreadable("a: 1\n---\nb: 2\n") == "2 more text after the end of the document");
}

TEST_CASE("what is not text is told with its line") {
    using namespace std::string_literals;
    CHECK(unreadable("a: 1\nb: \xff\n") == "2 bytes that are not UTF-8");
    CHECK(unreadable("\xff\xfe"s + "a\0"s) == "1 bytes that are not UTF-8");
    CHECK(unreadable("a: 1\n\nb: \0"s) == "3 a control character");
    CHECK(unreadable("a: \x1b[31m") == "1 a control character");
    CHECK(unreadable("a: \x7f") == "1 a control character");
    for (const char* bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82", "\xc3("}) {
        CHECK(unreadable(bad) == "1 bytes that are not UTF-8");
    }
    for (const char* good : {"\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                             "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbd"}) {
        CHECK(unreadable(good) == "readable");
    }
}

TEST_CASE("aliases are refused where they stand, so nothing expands") {
    std::string laughs = "a0: &a0 [x]\n";
    for (int i = 1; i < 40; ++i) {
        const std::string alias = "*a" + std::to_string(i - 1);
        const std::string name = 'a' + std::to_string(i);
        laughs += name + ": &" + name + " [" + alias + ',' + alias + "]\n";
    }
    CHECK(unreadable(laughs) == "readable");
    const auto result = config::load_text("workers: &w 2\nadmission: {max_queue: *w}\nlog: *w\n", "n");
    REQUIRE(result.mistakes.size() == 2);
    CHECK(result.mistakes[0].found == "an alias");
    CHECK(result.mistakes[1].found == "an alias");
    CHECK(unreadable("a: &a [*a]\n") == "readable");
    CHECK(unreadable("a: *nobody\n").starts_with("1 a syntax error"));
}

TEST_CASE("depth, number and size are bounded") {
    constexpr std::size_t most = config::k_max_document;
    const std::string deep = " nesting deeper than 16 levels";
    CHECK(unreadable(repeat("[", most)) == '1' + deep);
    CHECK(unreadable(repeat("{", most)) == '1' + deep);
    CHECK(unreadable(repeat("- ", most)) == '1' + deep);
    CHECK(unreadable(repeat("? ", most)) == '1' + deep);
    CHECK(unreadable(repeat("[", 16) + repeat("]", 16)) == "readable");
    CHECK(unreadable(repeat("a: 1\n", most)) == "10000 more than 20000 values");
    CHECK(unreadable(std::string(most, ' ')) == "readable");
    CHECK(unreadable(std::string(most + 1, ' ')) == "0 more than 1MiB");
}

TEST_CASE("however many mistakes, the list stays readable") {
    std::string text;
    for (int i = 0; i < 9'000; ++i)
        text += "key" + std::to_string(i) + ": 1\n";
    const auto result = config::load_text(text, "n");
    REQUIRE(result.mistakes.size() == 101);
    CHECK(result.mistakes.back().to_string() ==
          "n: found more than 100 mistakes, expected a noren configuration");
}

TEST_CASE("no mutation of the example crashes, hangs or goes through unread") {
    const std::string original = example();
    REQUIRE(original.size() > 1'000);
    std::mt19937 random(20'240'601);
    const auto below = [&](std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
    };
    constexpr std::array<std::string_view, 24> pieces = {
        "\n", "\t",    ":",     ": ",  "- ", "[",    "]",        "{",
        "}",  "\"",    "'",     "&a ", "*a", "!t ",  "|",        ">",
        "%",  "---\n", "...\n", "<<:", "#",  "\xff", "\xe2\x82", "999999999999999999999"};
    std::size_t accepted = 0;
    for (int round = 0; round < 3'000; ++round) {
        std::string text = original;
        for (std::size_t edit = 1 + below(4); edit > 0; --edit) {
            const std::size_t at = below(text.size());
            switch (below(4)) {
                case 0:
                    text[at] = static_cast<char>(below(256));
                    break;
                case 1:
                    text.insert(at, pieces[below(pieces.size())]);
                    break;
                case 2:
                    text.erase(at, 1 + below(40));
                    break;
                default: {
                    const std::string copied = text.substr(at, below(200));
                    text.insert(below(text.size()), copied);
                }
            }
        }
        const auto result = config::load_text(text, "n");
        REQUIRE(result.config.has_value() == result.mistakes.empty());
        for (const auto& mistake : result.mistakes) {
            REQUIRE_FALSE(mistake.found.empty());
            REQUIRE_FALSE(mistake.expected.empty());
        }
        accepted += result.ok() ? 1u : 0u;
    }
    // Most of the example is comments, so both ends must be reached.
    CHECK(accepted > 100);
    CHECK(accepted < 2'900);
}
