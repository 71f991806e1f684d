#pragma once
// An incremental JSON scanner (RFC 8259) that checks the whole grammar and keeps only what a schema names.
// Bytes come in pieces cut anywhere; no piece is held back, so a document of any size passes in bounded
// memory: an embedding's million floats leave nothing behind, a token event a few nodes.
//
// Beyond the RFC it takes what inference servers written in Python send: NaN, Infinity, and strings that are
// not UTF-8.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/observe/json_number.hpp"
#include "metrics/observe/json_tree.hpp"

namespace noren::metrics {

/// May throw std::bad_alloc, nothing else.
class JsonSieve {
  public:
    explicit JsonSieve(const JsonSchema& schema) : schema_(&schema) {}

    /// Ready for the next document.
    void reset();
    void feed(std::string_view bytes);
    /// No more bytes come. True if they were one whole valid document.
    bool finish();

    /// Nothing but blanks so far.
    bool blank() const { return state_ == State::value && levels_.empty(); }
    bool failed() const { return state_ == State::failed; }
    /// Elements of arrays were dropped because there were too many to keep.
    bool overflowed() const { return overflowed_; }
    /// Of a whole document, or of what has come of it so far.
    JsonValue root() const { return tree_.root(); }

  private:
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
    struct Level {
        bool is_object;
        bool in_array;             ///< it or a container around it is an array
        std::uint32_t node;        ///< JsonTree::k_none: not kept
        const JsonSchema* schema;  ///< of its members; null: nothing below is kept
    };

    const char* scan_structure(const char* at, const char* end);
    const char* scan_string(const char* at, const char* end);
    const char* scan_number(const char* at, const char* end);
    const char* scan_literal(const char* at, const char* end);
    void begin_value(char c);
    void after_value(char c);
    void begin_string(bool is_key);
    void end_string();
    void end_key(std::string_view key);
    void escaped(char c);
    void hex_digit(char c);
    void append_code_point(std::uint32_t code);
    void settle_surrogate();
    void capture(std::string_view bytes);
    void begin_number(char c);
    void end_number();
    void begin_literal(std::string_view literal);
    void end_literal();
    void open(bool is_object);
    void close(bool is_object);
    void value_done();
    bool keeping() const;
    std::uint32_t add(JsonType type, bool truthy);
    void fail() { state_ = State::failed; }

    const JsonSchema* schema_;
    JsonTree tree_;
    std::vector<Level> levels_;
    State state_ = State::value;
    bool overflowed_ = false;

    // The key the next value belongs to.
    bool in_key_ = false;
    bool key_overlong_ = false;
    std::string key_;  ///< its beginning, if it came in parts
    const JsonSchema::Member* member_ = nullptr;

    // The string, number or literal being scanned.
    bool keep_string_ = false;
    int hex_left_ = 0;
    std::uint32_t hex_value_ = 0;
    std::uint32_t high_surrogate_ = 0;
    JsonNumber number_;
    std::string_view literal_;
    std::size_t literal_at_ = 0;
};

}  // namespace noren::metrics
