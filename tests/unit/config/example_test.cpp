#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "config/keys.hpp"
#include "tests/unit/config/load_file.hpp"

namespace config = noren::config;
using noren::test::load_file;

namespace {

constexpr const char* k_example = NOREN_SOURCE_DIR "/config/noren.example.yaml";

}  // namespace

TEST_CASE("the example file says every default and nothing else") {
    const auto result = load_file(k_example);
    for (const auto& mistake : result.mistakes)
        UNSCOPED_INFO(mistake.to_string());
    REQUIRE(result.ok());
    CHECK(*result.config == config::Config{});
    for (const auto& key : config::keys()) {
        INFO(key.path());
        CHECK(result.origins.contains(key.path()));
    }
    CHECK(result.origins.size() == config::keys().size());
}

TEST_CASE("the example file explains every key, and marks those that need a restart and no others") {
    std::ifstream in(k_example);
    std::vector<std::string> lines{""};
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    const auto origins = load_file(k_example).origins;
    for (const auto& key : config::keys()) {
        INFO(key.path());
        auto line = static_cast<std::size_t>(origins.at(key.path()).line);
        std::string comment;
        while (lines.at(--line).find_first_not_of(' ') != std::string::npos &&
               lines[line][lines[line].find_first_not_of(' ')] == '#') {
            comment.insert(0, lines[line]);
        }
        CHECK_FALSE(comment.empty());
        const bool is_marked = comment.find("[restart]") != std::string::npos;
        CHECK(is_marked == (key.applies == config::Applies::after_restart));
    }
}

TEST_CASE("every key has a path of its own and stands with its section") {
    std::vector<std::string> paths;
    std::vector<std::string_view> sections;
    for (const auto& key : config::keys()) {
        paths.push_back(key.path());
        if (sections.empty() || sections.back() != key.section) sections.push_back(key.section);
        CHECK(config::find_key(key.section, key.name) == &key);
        CHECK(config::is_section(key.section) == !key.section.empty());
    }
    std::sort(paths.begin(), paths.end());
    CHECK(std::adjacent_find(paths.begin(), paths.end()) == paths.end());
    std::sort(sections.begin(), sections.end());
    CHECK(std::adjacent_find(sections.begin(), sections.end()) == sections.end());
    CHECK(config::find_key("", "max_queue") == nullptr);
    CHECK(config::find_key("", "") == nullptr);
}
