#pragma once
// The part of a JSON document that somebody will ask for: which part that is (JsonSchema), where it is kept
// (JsonTree), and how it is read (JsonValue).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noren::metrics {

/// What to keep of an object with these members. Arrays are transparent: their elements are kept by the
/// array's own schema. A member without a schema of its own is kept as a leaf.
class JsonSchema {
  public:
    struct Member {
        std::string_view key;      ///< of static storage
        const JsonSchema* schema;  ///< of its members, if it turns out to be an object or an array of them
    };

    JsonSchema() = default;
    explicit JsonSchema(std::vector<Member> members);

    const Member* find(std::string_view key) const;

  private:
    static constexpr std::size_t k_longest = 31;
    std::vector<Member> members_;  ///< by length, since that alone rules out most
    std::array<std::uint8_t, k_longest + 2> first_of_length_{};
};

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
    /// A member of an object; of repeated keys the last one counts, as in a Python dict. Nothing for anything
    /// else.
    JsonValue operator[](std::string_view key) const;
    /// The first kept element of an array, or member of an object; then next() of that.
    JsonValue first() const;
    JsonValue next() const;
    /// A string's content, or an object's or array's, is not empty; a number is not 0; a boolean is true.
    bool truthy() const;
    /// A whole number that fits 64 bits.
    std::optional<std::int64_t> integer() const;
    /// A string's beginning (k_max_string bytes at most); nothing for anything else, or if it has not ended.
    std::optional<std::string_view> text() const;
    bool operator==(std::string_view word) const { return text() == word; }

  private:
    friend class JsonTree;
    JsonValue(const JsonTree* tree, std::uint32_t node) : tree_(tree), node_(node) {}
    const JsonTree* tree_ = nullptr;
    std::uint32_t node_ = 0;
};

/// Values in the order they were added. Bounded; additions may throw std::bad_alloc.
class JsonTree {
  public:
    static constexpr std::uint32_t k_none = 0xffffffff;
    static constexpr std::size_t k_max_string = 256;

    /// Forgets all; keeps a usual document's memory, so that a stream's next event allocates nothing.
    void clear();
    bool empty() const { return nodes_.empty(); }
    JsonValue root() const { return empty() ? JsonValue() : JsonValue(this, 0); }
    bool has_children(std::uint32_t node) const { return nodes_[node].child != k_none; }

    /// Room for another value? Elements of arrays, which alone can be many, are refused earlier than others.
    bool has_room(bool in_array) const;
    /// parent: k_none for the root. member: of the parent's schema, null in an array.
    std::uint32_t add(std::uint32_t parent, const JsonSchema::Member* member, JsonType type, bool truthy);
    void set_truthy(std::uint32_t node) { nodes_[node].truthy = true; }
    void set_integer(std::uint32_t node, std::int64_t value);
    /// To the text of the last value, which is a string. What is over k_max_string is dropped.
    void append_text(std::string_view bytes);
    /// Drops a character that k_max_string has cut in two.
    void end_text();

  private:
    friend class JsonValue;

    struct Node {
        JsonType type = JsonType::null;
        bool truthy = false;
        bool whole = false;  ///< value is the integer; the text has ended
        std::uint16_t text_size = 0;
        std::uint32_t next = k_none;
        std::uint32_t child = k_none;
        std::uint32_t last_child = k_none;
        std::int64_t value = 0;      ///< the integer, or where in text_ the string begins
        std::uint64_t key_bits = 0;  ///< of an object: which keys it may have
        const JsonSchema::Member* member = nullptr;
    };

    std::vector<Node> nodes_;
    std::string text_;
};

inline bool JsonValue::is(JsonType type) const {
    return tree_ && tree_->nodes_[node_].type == type;
}

}  // namespace noren::metrics
