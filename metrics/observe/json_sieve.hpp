#pragma once
// An incremental JSON scanner (RFC 8259) that checks the whole grammar and keeps only what a schema names.
// Bytes come in pieces cut anywhere; no piece is held back, so a document of any size passes in bounded
// memory: an embedding's million floats leave nothing behind, a token event a few nodes.
//
// Beyond the RFC it takes what inference servers written in Python send: NaN, Infinity, and strings that are
// not UTF-8.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace noren::metrics {

/// What to keep of an object with these members. Arrays are transparent: their elements are kept by the
/// array's own schema. A member without a schema of its own is kept as a leaf.
struct JsonSchema {
    struct Member {
        std::string_view key;
        const JsonSchema* schema;  ///< of its members, if it turns out to be an object or an array of them
    };
    std::vector<Member> members;

    const Member* find(std::string_view key) const;
};

enum class JsonType : unsigned char { null, boolean, integer, number, string, array, object };

class JsonSieve;

/// A kept value, or nothing (absent, or not kept). Valid until the sieve is reset or fed.
class JsonValue {
  public:
    JsonValue() = default;

    explicit operator bool() const { return sieve_ != nullptr; }
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
    /// A string's beginning (256 bytes of UTF-8 at most); nothing for anything else.
    std::optional<std::string_view> text() const;
    bool operator==(std::string_view word) const { return text() == word; }

  private:
    friend class JsonSieve;
    JsonValue(const JsonSieve* sieve, std::uint32_t node) : sieve_(sieve), node_(node) {}
    const JsonSieve* sieve_ = nullptr;
    std::uint32_t node_ = 0;
};

/// Not copied while values point into it. May throw std::bad_alloc, nothing else.
class JsonSieve {
  public:
    explicit JsonSieve(const JsonSchema& schema) : schema_(&schema) { reset(); }

    /// Ready for the next document; keeps its memory.
    void reset();
    void feed(std::string_view bytes);
    /// No more bytes come. True if they were one whole valid document, all of what the schema names kept.
    bool finish();

    /// Nothing but blanks so far.
    bool blank() const { return state_ == State::value && levels_.empty() && nodes_.empty(); }
    bool failed() const { return state_ == State::failed; }
    /// Valid, but more was to be kept than the bounds allow.
    bool overflowed() const { return overflowed_; }
    /// After finish() said true.
    JsonValue root() const { return nodes_.empty() ? JsonValue() : JsonValue(this, 0); }

  private:
    friend class JsonValue;
    static constexpr std::uint32_t k_none = 0xffffffff;

    enum class State : unsigned char {
        value,          ///< a value must begin
        first_element,  ///< in a new array: a value or ]
        first_key,      ///< in a new object: a key or }
        key,            ///< after a comma in an object
        colon,
        after_value,  ///< , or the end of the container; at the top: blanks only
        string,
        escape,  ///< after a backslash
        hex,     ///< in \uXXXX
        number,
        literal,
        failed,
    };
    enum class NumberPart : unsigned char { minus, zero, integer, point, fraction, e, e_sign, exponent };

    struct Node {
        JsonType type = JsonType::null;
        bool truthy = false;
        bool whole = false;  ///< integer: value holds it
        std::uint8_t key_size = 0;
        std::uint16_t text_size = 0;
        std::uint32_t key = 0;  ///< offset in text_
        std::uint32_t next = k_none;
        std::uint32_t child = k_none;
        std::uint32_t last_child = k_none;
        std::int64_t value = 0;  ///< integer, or a string's offset in text_
    };
    struct Level {
        bool is_object;
        std::uint32_t node;        ///< k_none: not kept
        const JsonSchema* schema;  ///< of its members; null: nothing below is kept
    };

    const char* scan_string(const char* at, const char* end);
    const char* scan_number(const char* at, const char* end);
    void step(char c);
    void begin_string(bool is_key);
    void end_string();
    void escaped(char c);
    void hex_digit(char c);
    void append_code_point(std::uint32_t code);
    void settle_surrogate();
    void capture(std::string_view bytes);
    void begin_number(char c);
    void end_number();
    void begin_literal(char c);
    void literal_step(char c);
    void open(bool is_object);
    void close(bool is_object);
    void value_done();
    std::uint32_t add_node(JsonType type, bool truthy);
    bool keeping() const;
    void fail() { state_ = State::failed; }

    const JsonSchema* schema_;
    State state_ = State::value;
    std::vector<Level> levels_;
    std::vector<Node> nodes_;
    std::string text_;
    bool overflowed_ = false;

    // The key the next value belongs to.
    bool in_key_ = false;
    std::string key_;  ///< decoded, at most k_max_key
    bool key_overlong_ = false;
    const JsonSchema::Member* member_ = nullptr;

    // The string, number or literal being scanned.
    bool kept_string_ = false;
    bool string_truthy_ = false;
    std::uint32_t string_begin_ = 0;
    int hex_left_ = 0;
    std::uint32_t hex_value_ = 0;
    std::uint32_t high_surrogate_ = 0;
    NumberPart part_ = NumberPart::minus;
    bool negative_ = false, nonzero_ = false, too_big_ = false, whole_ = true;
    std::uint64_t magnitude_ = 0;
    std::string_view literal_;
    std::size_t literal_at_ = 0;
};

}  // namespace noren::metrics
