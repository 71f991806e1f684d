#pragma once
// An incremental JSON scanner (RFC 8259) that checks the whole grammar and keeps only what a schema names.
// Bytes come in pieces cut anywhere; no piece is held back, so a document of any size passes in bounded
// memory: an embedding's million floats leave nothing behind, a token event a few nodes.
//
// Beyond the RFC it takes what servers written in Python send: NaN, Infinity, strings that are not UTF-8.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/observe/json_number.hpp"
#include "metrics/observe/json_schema.hpp"
#include "metrics/observe/json_tree.hpp"

namespace noren::metrics {

/// A value that says no more than that it is there, and that a string is not empty.
struct LooseValue {
    enum class Kind : unsigned char {
        ignored,  ///< a string nobody asks for
        text,     ///< a string that is not empty
        number,   ///< a number nobody asks for
    };
    Kind kind;
    std::uint16_t begin, size;  ///< in the document, without the quotes
};

/// May throw std::bad_alloc, nothing else.
class JsonSieve {
  public:
    explicit JsonSieve(const JsonSchema& schema) : schema_(&schema) {}

    /// Ready for the next document.
    void reset();
    void feed(std::string_view bytes) {
        feed_borrowed(bytes);
        hold();
    }
    /// Likewise, but what is kept may refer to the bytes, until hold() or reset(): a document that is whole
    /// in one piece leaves no copy of anything.
    void feed_borrowed(std::string_view bytes);
    void hold() {
        tree_.hold();
        string_begin_ = nullptr;
    }
    /// No more bytes come. True if they were one whole valid document.
    bool finish();

    /// Nothing but blanks so far.
    bool blank() const { return state_ == State::value && levels_.empty(); }
    bool failed() const { return state_ == State::failed; }
    /// Elements of arrays were dropped because there were too many to keep.
    bool overflowed() const { return overflowed_; }
    /// Of a whole document, or of what has come of it so far.
    JsonValue root() const { return tree_.root(); }

    /// The loose values of a document that came in one piece, in order: it would be understood in the same
    /// way with others of their kinds in their places. Empty if there are too many.
    std::span<const LooseValue> loose() const { return loose_.values(); }

  private:
    enum class State : unsigned char {
        // Between the tokens.
        first_key,  ///< in a new object: a key or }
        key,        ///< after a comma in an object
        colon,
        first_element,  ///< in a new array: a value or ]
        value,          ///< a value must begin
        after_value,    ///< , or the end of the container; at the top: blanks only
        // Inside of one that the piece before had only the beginning of.
        string,
        escape,  ///< after a backslash
        hex,     ///< in \uXXXX
        number,
        literal,
        failed,
    };
    struct Level {
        const JsonSchema* schema;  ///< of its members; null: nothing below is kept
        std::uint32_t node;        ///< JsonTree::k_none: not kept
        bool is_object;
        bool in_array;        ///< it or a container around it is an array
        bool counts = false;  ///< an array of which only that is kept
        bool has_number = false;
        std::uint32_t commas = 0;
    };
    /// Where the value that comes next belongs.
    struct Place {
        bool kept = true;
        std::uint32_t mark = 0;              ///< of its key
        const JsonSchema* schema = nullptr;  ///< of its members
        bool counted = false;                ///< if it is an array
    };

    /// What is known of a string, number or literal whose rest is still to come: of one that is cut between
    /// two pieces, and of a string from its first escape on.
    struct Unfinished {
        bool pending = false;  ///< there is one
        bool is_key = false;
        bool kept = false;
        std::array<char, JsonSchema::k_max_key> key{};  ///< its beginning
        std::size_t key_size = 0;
        int hex_left = 0;
        std::uint32_t hex_value = 0;
        std::uint32_t high_surrogate = 0;
        JsonNumber number;
        std::string_view literal;
        std::size_t literal_at = 0;
    };

    class LooseValues {
      public:
        void clear() { count_ = 0; }
        void add(LooseValue::Kind kind, std::ptrdiff_t begin, std::ptrdiff_t end) {
            if (count_ > k_most) return;
            if (count_ == k_most || end > std::numeric_limits<std::uint16_t>::max()) {
                count_ = k_most + 1;  // too many, or too far
                return;
            }
            values_[count_++] = {kind, static_cast<std::uint16_t>(begin),
                                 static_cast<std::uint16_t>(end - begin)};
        }
        std::span<const LooseValue> values() const {
            return std::span(values_).first(count_ <= k_most ? count_ : 0);
        }

      private:
        static constexpr std::uint8_t k_most = 12;
        std::array<LooseValue, k_most> values_{};
        std::uint8_t count_ = 0;
    };

    // Between the tokens, and tokens that are whole.
    const char* scan_structure(const char* at, const char* end);
    const char* scan_key(const char* at, const char* end);
    const char* scan_value(const char* at, const char* end);
    const char* scan_text(const char* at, const char* end);
    const char* scan_number(const char* at, const char* end);
    const char* scan_literal(std::string_view literal, const char* at, const char* end);
    const char* skip_blank(const char* at);
    void make_room();
    void open(bool is_object);
    void close(bool is_object, bool empty);
    void next_of(Level& level);
    void end_key(std::string_view key);
    void note_loose(const char* begin, const char* end);
    void end_number(const JsonNumber& number);
    void end_literal(char first);
    std::uint32_t add(JsonType type, bool truthy);
    bool keeps();

    // Unfinished ones.
    const char* resume_string(const char* at, const char* end);
    const char* resume_number(const char* at, const char* end);
    const char* resume_literal(const char* at, const char* end);
    void begin_string(bool is_key, std::string_view beginning);
    void capture(std::string_view bytes);
    void end_string(const char* quote);
    void escaped(char c);
    void hex_digit(char c);
    void append_code_point(std::uint32_t code);
    void settle_surrogate();

    void fail() { state_ = State::failed; }

    const JsonSchema* schema_;
    JsonTree tree_;
    std::vector<Level> levels_;
    State state_ = State::value;
    bool overflowed_ = false;
    Place place_{true, 0, schema_};
    Unfinished unfinished_;
    LooseValues loose_;
    const char* piece_ = nullptr;         ///< that is being fed
    const char* string_begin_ = nullptr;  ///< of the unfinished string, if it is in this piece
};

}  // namespace noren::metrics
