#include "config/assembly.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <utility>
#include <variant>

#include "config/contradictions.hpp"
#include "config/document.hpp"
#include "config/nearest.hpp"

namespace noren::config {

namespace {

constexpr std::size_t k_most_mistakes = 100;  // enough for any person; a bound for any input

/// The name in `section` of the section that leads to `inner`; empty if `inner` is not in it.
std::string_view step_towards(std::string_view inner, std::string_view section) {
    if (!section.empty()) {
        if (!inner.starts_with(section) || inner.substr(section.size(), 1) != ".") return {};
        inner.remove_prefix(section.size() + 1);
    }
    return inner.substr(0, inner.find('.'));
}

/// What may stand in a section: its keys and the sections in it.
std::vector<std::string_view> names_in(std::string_view section) {
    std::vector<std::string_view> names;
    for (const Key& key : keys()) {
        const std::string_view name = key.section == section ? key.name : step_towards(key.section, section);
        if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
    }
    return names;
}

/// What to write instead of a key that does not exist: one like it here, or the same name in another section.
std::string suggest(std::string_view section, std::string_view typed) {
    const std::vector<std::string_view> names = names_in(section);
    if (const auto close = nearest(typed, names); !close.empty()) {
        return std::string(close) + " (did you mean that?)";
    }
    for (const Key& key : keys()) {
        if (key.name == typed) return key.path() + " (did you mean that?)";
    }
    std::string all;
    for (const std::string_view name : names)
        all.append(all.empty() ? "one of " : ", ").append(name);
    return all;
}

/// A key as it may stand in a message: short and without control characters.
std::string shown(std::string_view name) {
    const std::string quoted = quote(name);
    const bool plain = quoted.size() == name.size() + 2 && !name.empty();
    return plain ? std::string(name) : quoted;
}

}  // namespace

void Assembly::add_text(std::string_view text, std::string_view name) {
    auto document = parse_document(text);
    if (auto* mistake = std::get_if<Mistake>(&document)) {
        mistake->file = name;
        return add_gap(std::move(*mistake));
    }
    const Value& root = std::get<Value>(document);
    if (root.kind == Value::Kind::null) return;
    if (root.kind != Value::Kind::map) {
        return add_gap({std::string(name), root.line, "", describe(root), "keys and sections"});
    }
    decode_map(root, "", name);
}

void Assembly::decode_map(const Value& map, std::string_view section, std::string_view name) {
    for (std::size_t i = 0; i + 1 < map.items.size() && !is_full(); i += 2) {
        decode_entry(map.items[i], map.items[i + 1], section, name);
    }
}

void Assembly::decode_entry(const Value& key, const Value& value, std::string_view section,
                            std::string_view name) {
    const std::string path = key_path(section, shown(key.text));
    const auto refuse = [&](std::string found, std::string expected) {
        add_gap({std::string(name), key.line, path, std::move(found), std::move(expected)});
    };
    if (key.kind != Value::Kind::scalar) {
        return add_gap({std::string(name), key.line, std::string(section), describe(key) + " as a key",
                        "the name of a key"});
    }
    const Key* known = find_key(section, key.text);
    const std::string inner = key_path(section, key.text);
    const bool opens_section = key.text.find('.') == std::string::npos && is_section(inner);
    if (!known && !opens_section) return refuse("an unknown key", suggest(section, key.text));

    const auto [first, is_new] = origins_.try_emplace(path, Origin{std::string(name), key.line});
    if (!is_new) {
        return refuse("the key again (first on line " + std::to_string(first->second.line) + ')',
                      "each key once");
    }
    if (known) return read_key(*known, value, {name, key.line});
    // A section whose keys are all commented out.
    if (value.kind == Value::Kind::null) return;
    if (value.kind != Value::Kind::map) return refuse(describe(value), "keys of the section " + path);
    decode_map(value, inner, name);
}

void Assembly::add_override(const Key& key, std::string_view text, std::string_view source) {
    Origin& origin = origins_[key.path()];
    if (origin.line > 0) overruled_.emplace(key.path(), origin);
    origin = {std::string(source), 0};
    read_key(key, Value::scalar(std::string(text)), {source, 0});
}

void Assembly::read_key(const Key& key, const Value& value, Place place) {
    Refusals refusals;
    if (key.read(value, config_, refusals)) return;
    refused_.insert(key.path());
    for (Refusal& refusal : refusals) {
        // A value that is not there has no line of its own; some stand on the line after their key.
        const bool is_item = value.kind == Value::Kind::list && refusal.line > 0;
        const int line = is_item ? refusal.line : place.line;
        add_mistake({std::string(place.source), line, key.path(), std::move(refusal.found),
                     std::move(refusal.expected)});
    }
}

void Assembly::add_gap(Mistake mistake) {
    is_whole_ = false;
    add_mistake(std::move(mistake));
}

void Assembly::add_mistake(Mistake mistake) {
    // In the order of the file's lines; what has no line comes after those, in the order of its coming.
    const auto rank = [](const Mistake& one) { return one.line > 0 ? one.line : INT_MAX; };
    const auto at = std::upper_bound(mistakes_.begin(), mistakes_.end(), rank(mistake),
                                     [&](int wanted, const Mistake& one) { return wanted < rank(one); });
    mistakes_.insert(at, std::move(mistake));
}

bool Assembly::is_full() const {
    return mistakes_.size() > k_most_mistakes;
}

void Assembly::check_contradictions() {
    if (!is_whole_) return;
    for (Contradiction& contradiction : find_contradictions(config_)) {
        const auto& involved = contradiction.keys;
        // With one of the values refused, its default stands in for it and proves nothing.
        const auto is_refused = [this](std::string_view key) { return refused_.contains(key); };
        if (std::any_of(involved.begin(), involved.end(), is_refused)) continue;
        const auto set = std::find_if(involved.begin(), involved.end(),
                                      [this](std::string_view key) { return origins_.contains(key); });
        const std::string_view key = set == involved.end() ? involved.front() : *set;
        const Origin origin = set == involved.end() ? Origin{"defaults", 0} : origins_.find(key)->second;
        add_mistake({origin.source, origin.line, std::string(key), std::move(contradiction.found),
                     std::move(contradiction.expected)});
    }
}

LoadResult Assembly::finish() && {
    check_contradictions();
    if (is_full()) {
        mistakes_.resize(k_most_mistakes);
        mistakes_.push_back({mistakes_.front().file, 0, "",
                             "more than " + std::to_string(k_most_mistakes) + " mistakes",
                             "a noren configuration"});
    }
    std::erase_if(origins_, [](const auto& origin) { return is_section(origin.first); });

    LoadResult result;
    if (mistakes_.empty()) result.config = std::move(config_);
    result.mistakes = std::move(mistakes_);
    for (const auto& [key, in_file] : overruled_)
        result.overruled.push_back({in_file, key, origins_.at(key).source});
    result.origins = std::move(origins_);
    return result;
}

}  // namespace noren::config
