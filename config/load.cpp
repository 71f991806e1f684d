#include "config/load.hpp"

#include <utility>
#include <variant>

#include "config/assembly.hpp"
#include "config/read_file.hpp"

namespace noren::config {

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
