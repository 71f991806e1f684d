#include "metrics/observe/json_tree.hpp"

#include <algorithm>
#include <utility>

namespace noren::metrics {
namespace {

// A usual event leaves a dozen values. The bounds are for who sends a thousand choices, or means harm.
constexpr std::size_t k_max_nodes = 4096;
constexpr std::size_t k_max_text = 64 * 1024;
// Beyond them there is room for what stands outside of arrays, so that the usage behind a thousand choices is
// seen.
constexpr std::size_t k_reserve_nodes = 256;
constexpr std::size_t k_reserve_text = 16 * 1024;
// What a stream keeps between its events.
constexpr std::size_t k_idle_nodes = 64;
constexpr std::size_t k_idle_text = 1024;

/// Calls no memcmp for what differs in size or at once, as nearly all keys do.
bool same_key(std::string_view a, std::string_view b) {
    return a.size() == b.size() && (a.empty() || (a.front() == b.front() && a == b));
}

/// One of 64 bits, so that an object can tell at a glance most of the keys it does not have.
std::uint64_t key_bit(std::string_view key) {
    const auto first = static_cast<unsigned char>(key.empty() ? '\0' : key.front());
    const auto last = static_cast<unsigned char>(key.empty() ? '\0' : key.back());
    return std::uint64_t{1} << ((key.size() * 8 + first + last * 5U) & 63);
}

}  // namespace

JsonSchema::JsonSchema(std::vector<Member> members) : members_(std::move(members)) {
    std::sort(members_.begin(), members_.end(),
              [](const Member& a, const Member& b) { return a.key.size() < b.key.size(); });
    for (std::size_t length = 0; length < first_of_length_.size(); ++length) {
        const auto first = std::find_if(members_.begin(), members_.end(),
                                        [&](const Member& m) { return m.key.size() >= length; });
        first_of_length_[length] = static_cast<std::uint8_t>(first - members_.begin());
    }
}

const JsonSchema::Member* JsonSchema::find(std::string_view key) const {
    if (key.size() > k_longest) return nullptr;
    for (std::size_t i = first_of_length_[key.size()]; i < first_of_length_[key.size() + 1]; ++i)
        if (same_key(members_[i].key, key)) return &members_[i];
    return nullptr;
}

// --- JsonValue

JsonValue JsonValue::first() const {
    if (!tree_ || tree_->nodes_[node_].child == JsonTree::k_none) return {};
    return {tree_, tree_->nodes_[node_].child};
}

JsonValue JsonValue::next() const {
    if (!tree_ || tree_->nodes_[node_].next == JsonTree::k_none) return {};
    return {tree_, tree_->nodes_[node_].next};
}

JsonValue JsonValue::operator[](std::string_view key) const {
    if (!is(JsonType::object) || (tree_->nodes_[node_].key_bits & key_bit(key)) == 0) return {};
    std::uint32_t found = JsonTree::k_none;
    for (std::uint32_t child = tree_->nodes_[node_].child; child != JsonTree::k_none;
         child = tree_->nodes_[child].next)
        if (same_key(tree_->nodes_[child].member->key, key)) found = child;
    return found == JsonTree::k_none ? JsonValue() : JsonValue(tree_, found);
}

bool JsonValue::truthy() const {
    return tree_ && tree_->nodes_[node_].truthy;
}

std::optional<std::int64_t> JsonValue::integer() const {
    if (!is(JsonType::integer) || !tree_->nodes_[node_].whole) return std::nullopt;
    return tree_->nodes_[node_].value;
}

std::optional<std::string_view> JsonValue::text() const {
    if (!is(JsonType::string) || !tree_->nodes_[node_].whole) return std::nullopt;
    const JsonTree::Node& node = tree_->nodes_[node_];
    return std::string_view(tree_->text_).substr(static_cast<std::size_t>(node.value), node.text_size);
}

// --- JsonTree

void JsonTree::clear() {
    if (nodes_.capacity() > k_idle_nodes) std::vector<Node>().swap(nodes_);
    if (text_.capacity() > k_idle_text) std::string().swap(text_);
    nodes_.clear();
    text_.clear();
}

bool JsonTree::has_room(bool in_array) const {
    const std::size_t more_nodes = in_array ? 0 : k_reserve_nodes, more_text = in_array ? 0 : k_reserve_text;
    return nodes_.size() < k_max_nodes + more_nodes && text_.size() < k_max_text + more_text;
}

std::uint32_t JsonTree::add(std::uint32_t parent, const JsonSchema::Member* member, JsonType type,
                            bool truthy) {
    const auto index = static_cast<std::uint32_t>(nodes_.size());
    Node& node = nodes_.emplace_back();
    node.type = type;
    node.truthy = truthy;
    node.member = member;
    if (type == JsonType::string) node.value = static_cast<std::int64_t>(text_.size());
    if (parent == k_none) return index;
    Node& above = nodes_[parent];
    (above.child == k_none ? above.child : nodes_[above.last_child].next) = index;
    above.last_child = index;
    if (member) above.key_bits |= key_bit(member->key);
    return index;
}

void JsonTree::set_integer(std::uint32_t node, std::int64_t value) {
    nodes_[node].value = value;
    nodes_[node].whole = true;
}

void JsonTree::append_text(std::string_view bytes) {
    Node& node = nodes_.back();
    node.truthy = true;
    const std::size_t take = std::min(bytes.size(), k_max_string - node.text_size);
    text_.append(bytes.substr(0, take));
    node.text_size = static_cast<std::uint16_t>(node.text_size + take);
}

void JsonTree::end_text() {
    Node& node = nodes_.back();
    node.whole = true;
    if (node.text_size < k_max_string) return;
    const auto from_end = [&](std::size_t i) {
        return static_cast<unsigned char>(text_[text_.size() - 1 - i]);
    };
    std::size_t tail = 0;
    while (tail < 3 && (from_end(tail) & 0xc0) == 0x80)
        ++tail;
    const unsigned char lead = from_end(tail);
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (length > tail + 1) node.text_size = static_cast<std::uint16_t>(node.text_size - (tail + 1));
}

}  // namespace noren::metrics
