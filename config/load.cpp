#include "config/load.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "config/assembly.hpp"
#include "config/keys.hpp"
#include "config/read_file.hpp"

namespace noren::config {

namespace {

void apply(const Overrides& overrides, std::string_view OverrideName::* source, Assembly& assembly) {
    for (const OverrideName& known : override_names()) {
        const auto& text = overrides.*known.member;
        const Key* key = find_key(known.section, known.name);
        if (text && key) assembly.add_override(*key, *text, known.*source);
    }
}

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

LimitFile apply_limit_file(Assembly& assembly) {
    const std::string path = assembly.so_far().admission.max_concurrency_file;
    if (path.empty()) return {};
    LimitFile file = read_limit_file(path);
    if (const std::string_view limit = trimmed(file.text); file.warning.empty() && !limit.empty())
        assembly.add_override(*find_key("admission", "max_concurrency"), limit, path);
    return file;
}

Resolved finish(const Sources& sources, Assembly&& assembly, std::string file_text) {
    apply(sources.environment, &OverrideName::variable, assembly);
    apply(sources.flags, &OverrideName::flag, assembly);
    LimitFile limit = apply_limit_file(assembly);
    return {std::move(assembly).finish(), std::move(file_text), std::move(limit)};
}

}  // namespace

std::string Overruled::to_string() const {
    return in_file.source + ":" + std::to_string(in_file.line) + ": " + key + " is not in force: " + by +
           " is stronger";
}

void LoadResult::add_mistake(std::string_view key, std::string found, std::string expected) {
    const auto set = origins.find(key);
    const Origin origin = set == origins.end() ? Origin{"defaults", 0} : set->second;
    mistakes.push_back({origin.source, origin.line, std::string(key), std::move(found), std::move(expected)});
}

LimitFile read_limit_file(const std::string& path) {
    auto file = read_file(path);
    if (auto* text = std::get_if<std::string>(&file)) return {std::move(*text), ""};
    const Mistake& mistake = std::get<Mistake>(file);
    if (mistake.found == k_no_such_file) return {};
    return {mistake.found, "admission.max_concurrency_file says nothing: " + path + " is " + mistake.found};
}

std::optional<std::string> Sources::file() const {
    return flags.config ? flags.config : environment.config;
}

Resolved load(const Sources& sources) {
    const auto path = sources.file();
    if (!path) return finish(sources, Assembly{}, "");
    auto file = read_file(*path);
    if (auto* text = std::get_if<std::string>(&file)) return load(sources, std::move(*text));
    Assembly assembly;
    assembly.add_gap(std::get<Mistake>(std::move(file)));
    return finish(sources, std::move(assembly), "");
}

Resolved load(const Sources& sources, std::string file_text) {
    Assembly assembly;
    assembly.add_text(file_text, sources.file().value_or("config"));
    return finish(sources, std::move(assembly), std::move(file_text));
}

std::string control_socket(const Sources& sources) {
    Assembly assembly;
    if (const auto path = sources.file()) {
        const auto file = read_file(*path);
        if (const auto* text = std::get_if<std::string>(&file)) assembly.add_text(*text, *path);
    }
    return assembly.so_far().control.socket;
}

LoadResult load_text(std::string_view text, std::string_view name) {
    Assembly assembly;
    assembly.add_text(text, name);
    return std::move(assembly).finish();
}

bool says_nothing(std::string_view yaml) {
    while (!yaml.empty()) {
        std::string_view line = yaml.substr(0, yaml.find('\n'));
        yaml.remove_prefix(std::min(yaml.size(), line.size() + 1));
        line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t\r")));
        line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
        if (!line.empty() && line.front() != '#' && line != "---" && line != "...") return false;
    }
    return true;
}

}  // namespace noren::config
