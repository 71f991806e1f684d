#include "metrics/observe/json_schema.hpp"

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace noren::metrics {

JsonSchema::JsonSchema(std::vector<Member> members) : members_(std::move(members)) {
    std::set<std::uint32_t> marks;
    for (const Member& member : members_)
        if (member.key.text().size() >= k_max_key || !marks.insert(member.key.mark()).second)
            throw std::logic_error("a key that cannot be told from others: " +
                                   std::string(member.key.text()));
    // A factor that suits is found in a few steps: there are several times more slots than keys.
    while (!place_all())
        factor_ = factor_ * 0x01000193U + 2;
}

/// False if two keys got the same slot.
bool JsonSchema::place_all() {
    places_ = {};
    for (std::size_t i = 0; i < members_.size(); ++i) {
        std::uint8_t& place = places_[slot(members_[i].key.mark())];
        if (std::exchange(place, static_cast<std::uint8_t>(i + 1)) != 0) return false;
    }
    return true;
}

}  // namespace noren::metrics
