#include "metrics/observe/json_tree.hpp"

#include <algorithm>
#include <utility>

namespace noren::metrics {
namespace {

// What a stream keeps between its events.
constexpr std::size_t k_idle_nodes = 64;
constexpr std::size_t k_idle_text = 1024;

}  // namespace

// --- JsonValue

JsonValue JsonValue::first() const {
    if (!tree_) return {};
    const std::uint32_t end = tree_->end_of(node_);
    return node_ + 1 < end ? JsonValue(tree_, node_ + 1, end) : JsonValue();
}

JsonValue JsonValue::next() const {
    if (!tree_) return {};
    const std::uint32_t end = tree_->end_of(node_);
    return end < limit_ ? JsonValue(tree_, end, limit_) : JsonValue();
}

JsonValue JsonValue::find(std::uint32_t mark) const {
    const std::uint32_t limit = tree_->end_of(node_);
    std::uint32_t found = 0;
    for (std::uint32_t child = node_ + 1; child < limit; child = tree_->end_of(child))
        if (tree_->nodes_[child].mark == mark) found = child;
    return found == 0 ? JsonValue() : JsonValue(tree_, found, limit);
}

std::optional<std::int64_t> JsonValue::integer() const {
    if (!is(JsonType::integer) || !tree_->nodes_[node_].whole) return std::nullopt;
    return tree_->nodes_[node_].value;
}

std::optional<JsonValue::Elements> JsonValue::elements() const {
    if (!is(JsonType::array) || tree_->nodes_[node_].end == 0) return std::nullopt;
    return Elements{tree_->nodes_[node_].value, tree_->nodes_[node_].whole};
}

std::optional<std::string_view> JsonValue::text() const {
    if (!is(JsonType::string) || !tree_->nodes_[node_].whole) return std::nullopt;
    const JsonTree::Node& node = tree_->nodes_[node_];
    return std::string_view(node.borrowed ? node.borrowed : tree_->text_.data() + node.value, node.text_size);
}

// --- JsonTree

void JsonTree::clear() {
    if (nodes_.capacity() > k_idle_nodes) std::vector<Node>().swap(nodes_);
    if (text_.capacity() > k_idle_text) std::string().swap(text_);
    nodes_.clear();
    text_.clear();
    text_kept_ = held_nodes_ = 0;
}

/// Without a last character that k_max_string has cut in two.
std::size_t JsonTree::whole_characters(std::string_view text) {
    if (text.size() < k_max_string) return text.size();
    const auto from_end = [&](std::size_t i) {
        return static_cast<unsigned char>(text[text.size() - 1 - i]);
    };
    std::size_t tail = 0;
    while (tail < 3 && (from_end(tail) & 0xc0) == 0x80)
        ++tail;
    const unsigned char lead = from_end(tail);
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return length > tail + 1 ? text.size() - (tail + 1) : text.size();
}

void JsonTree::append_text(std::string_view bytes) {
    Node& node = nodes_.back();
    node.truthy = true;
    const std::size_t take = std::min(bytes.size(), k_max_string - node.text_size);
    text_.append(bytes.substr(0, take));
    text_kept_ += take;
    node.text_size = static_cast<std::uint16_t>(node.text_size + take);
}

void JsonTree::end_text() {
    Node& node = nodes_.back();
    node.whole = true;
    const std::size_t size = whole_characters({text_.data() + node.value, std::size_t{node.text_size}});
    text_kept_ -= node.text_size - size;
    node.text_size = static_cast<std::uint16_t>(size);
}

void JsonTree::hold_from(std::size_t first) {
    for (std::size_t i = first; i < nodes_.size(); ++i) {
        Node& node = nodes_[i];
        if (!node.borrowed) continue;
        node.value = static_cast<std::int64_t>(text_.size());
        text_.append(std::exchange(node.borrowed, nullptr), node.text_size);
    }
    held_nodes_ = nodes_.size();
}

}  // namespace noren::metrics
