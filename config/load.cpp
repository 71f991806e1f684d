#include "config/load.hpp"

#include <utility>
#include <variant>

#include "config/assembly.hpp"
#include "config/read_file.hpp"

namespace noren::config {

void LoadResult::add_mistake(std::string_view key, std::string found, std::string expected) {
    const auto set = origins.find(key);
    const Origin origin = set == origins.end() ? Origin{"defaults", 0} : set->second;
    mistakes.push_back({origin.source, origin.line, std::string(key), std::move(found), std::move(expected)});
}

LoadResult load_file(const std::string& path) {
    auto file = read_file(path);
    if (const auto* text = std::get_if<std::string>(&file)) return load_text(*text, path);
    Assembly assembly;
    assembly.add_gap(std::get<Mistake>(std::move(file)));
    return std::move(assembly).finish();
}

LoadResult load_text(std::string_view text, std::string_view name) {
    Assembly assembly;
    assembly.add_text(text, name);
    return std::move(assembly).finish();
}

}  // namespace noren::config
