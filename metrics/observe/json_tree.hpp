#pragma once
// The part of a JSON document that somebody will ask for: kept in a JsonTree, read as JsonValues.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/observe/json_key.hpp"

namespace noren::metrics {

enum class JsonType : unsigned char { null, boolean, integer, number, string, array, object };

class JsonTree;

/// A kept value, or nothing (absent, or not kept). Valid until its tree changes.
class JsonValue {
  public:
    JsonValue() = default;

    explicit operator bool() const { return tree_ != nullptr; }
    bool is(JsonType type) const;
    /// There, and not null.
    bool present() const { return *this && !is(JsonType::null); }
    /// A member of an object, of repeated keys the last (as in a Python dict); of anything else nothing.
    JsonValue operator[](JsonKey key) const;
    /// False: it is no object, or has none of them. True: it may have one.
    bool may_have(JsonKeySet keys) const;
    /// The first kept element of an array, or member of an object; then next() of that.
    JsonValue first() const;
    JsonValue next() const;
    /// A string's content, or an object's or array's, is not empty; a number is not 0; a boolean is true.
    bool truthy() const;
    /// Of an array of which only that is kept (JsonSchema::Member::counted), once it is closed: how many
    /// elements it has, and whether one of them is a number.
    struct Elements {
        std::int64_t count = 0;
        bool has_number = false;
    };
    std::optional<Elements> elements() const;
    /// A whole number that fits 64 bits.
    std::optional<std::int64_t> integer() const;
    /// A string's beginning (k_max_string bytes at most); nothing for anything else, or if it has not ended.
    std::optional<std::string_view> text() const;
    bool operator==(std::string_view word) const { return text() == word; }

  private:
    friend class JsonTree;
    JsonValue(const JsonTree* tree, std::uint32_t node, std::uint32_t limit)
        : tree_(tree), node_(node), limit_(limit) {}
    JsonValue find(std::uint32_t mark) const;

    const JsonTree* tree_ = nullptr;
    std::uint32_t node_ = 0;
    std::uint32_t limit_ = 0;  ///< where what contains it ends
};

/// Values in document order, each followed by what it contains. Bounded; additions may throw std::bad_alloc.
///
/// A string that came in one piece is not copied but referred to where it lies; hold() takes such strings in
/// before those bytes go away.
class JsonTree {
  public:
    static constexpr std::uint32_t k_none = 0xffffffff;
    static constexpr std::size_t k_max_string = 256;

    /// Forgets all; keeps a usual document's memory, so that a stream's next event allocates nothing.
    void clear();
    /// For a small document's values at once.
    void make_room() { nodes_.reserve(k_usual_nodes); }
    bool empty() const { return nodes_.empty(); }
    JsonValue root() const { return empty() ? JsonValue() : JsonValue(this, 0, size()); }

    /// Room for another value? Elements of arrays, which alone can be many, are refused earlier than others.
    bool has_room(bool in_array) const {
        return nodes_.size() < k_max_nodes + (in_array ? 0 : k_reserve_nodes) &&
               text_kept_ < k_max_text + (in_array ? 0 : k_reserve_text);
    }
    /// Into the container that was opened last and is not closed yet. mark: of its key; 0 in an array.
    std::uint32_t add(JsonType type, std::uint32_t mark, bool truthy) {
        const std::uint32_t index = size();
        Node& node = nodes_.emplace_back();
        node.type = type;
        node.truthy = truthy;
        node.mark = mark;
        if (type < JsonType::array) node.end = index + 1;
        return index;
    }
    /// A whole string as it lies in memory, without escapes.
    void add_string(std::uint32_t mark, std::string_view text) {
        Node& node = nodes_[add(JsonType::string, mark, !text.empty())];
        node.whole = true;
        node.text_size = static_cast<std::uint16_t>(
            text.size() < k_max_string ? text.size() : whole_characters(text.substr(0, k_max_string)));
        node.borrowed = text.data();
        text_kept_ += node.text_size;
    }
    /// A string that comes in parts. They are put together at the end of the text.
    void begin_text(std::uint32_t mark) {
        hold();
        nodes_[add(JsonType::string, mark, false)].value = static_cast<std::int64_t>(text_.size());
    }
    void note_key(std::uint32_t container, JsonKey key) { nodes_[container].keys |= key.bit(); }
    void close(std::uint32_t container, bool truthy) {
        nodes_[container].end = size();
        nodes_[container].truthy = truthy;
    }
    void set_integer(std::uint32_t node, std::int64_t value) {
        nodes_[node].value = value;
        nodes_[node].whole = true;
    }
    void set_elements(std::uint32_t array, JsonValue::Elements elements) {
        nodes_[array].value = elements.count;
        nodes_[array].whole = elements.has_number;
    }
    /// To the text of the last value, which is such a string. What is over k_max_string is dropped.
    void append_text(std::string_view bytes);
    void end_text();

    void hold() {
        if (held_nodes_ < nodes_.size()) hold_from(held_nodes_);
    }

  private:
    friend class JsonValue;

    static constexpr std::size_t k_usual_nodes = 8;
    // A usual event leaves a dozen values. The bounds are for who sends a thousand choices, or means harm.
    static constexpr std::size_t k_max_nodes = 4096, k_max_text = 64 * 1024;
    // Beyond them there is room for what stands outside of arrays, so that the usage behind a thousand
    // choices is seen.
    static constexpr std::size_t k_reserve_nodes = 256, k_reserve_text = 16 * 1024;

    struct Node {
        JsonType type = JsonType::null;
        bool truthy = false;
        bool whole = false;  ///< value is the integer; the text has ended; of a counted array: has numbers
        std::uint16_t text_size = 0;
        std::uint32_t mark = 0;
        std::uint32_t end = 0;           ///< index behind what it contains; 0: it is not closed yet
        std::uint64_t keys = 0;          ///< of an object: JsonKey::bit of each
        std::int64_t value = 0;          ///< the integer, where in text_ the string begins, or the count
        const char* borrowed = nullptr;  ///< or where else the string lies
    };

    std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
    std::uint32_t end_of(std::uint32_t node) const { return nodes_[node].end ? nodes_[node].end : size(); }
    void hold_from(std::size_t first);
    static std::size_t whole_characters(std::string_view text);

    std::vector<Node> nodes_;
    std::string text_;
    std::size_t text_kept_ = 0;   ///< bytes of all strings, borrowed ones included
    std::size_t held_nodes_ = 0;  ///< those before are not borrowed
};

inline bool JsonValue::is(JsonType type) const {
    return tree_ && tree_->nodes_[node_].type == type;
}

inline bool JsonValue::truthy() const {
    return tree_ && tree_->nodes_[node_].truthy;
}

inline JsonValue JsonValue::operator[](JsonKey key) const {
    return tree_ && (tree_->nodes_[node_].keys & key.bit()) != 0 ? find(key.mark()) : JsonValue();
}

inline bool JsonValue::may_have(JsonKeySet keys) const {
    return tree_ && (tree_->nodes_[node_].keys & keys.bits()) != 0;
}

}  // namespace noren::metrics
