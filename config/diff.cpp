#include "config/diff.hpp"

#include "config/keys.hpp"
#include "config/render.hpp"

namespace noren::config {

std::string Change::to_string() const {
    return key + ": " + from + " -> " + to + (restart_required ? " (restart needed)" : "");
}

std::vector<Change> diff(const Config& from, const Config& to) {
    std::vector<Change> changes;
    for (const Key& key : keys()) {
        if (key.equal(from, to)) continue;
        changes.push_back({key.path(), render_inline(key.write(from)), render_inline(key.write(to)),
                           key.applies == Applies::after_restart});
    }
    return changes;
}

Config apply_live(const Config& running, const Config& to) {
    Config live = to;
    for (const Key& key : keys()) {
        if (key.applies == Applies::after_restart) key.copy(running, live);
    }
    return live;
}

}  // namespace noren::config
