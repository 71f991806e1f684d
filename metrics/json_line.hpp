#pragma once
// One line of a log, as a JSON object.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace noren::metrics {

/// Builds it member by member. Strings come out as valid UTF-8 whatever bytes went in, cut after 1 KiB; an
/// empty optional adds nothing. Numbers with a fraction are milliseconds or rates: three decimals; null if
/// not finite or beyond 1e15. Keys need no escaping.
class JsonLine {
  public:
    JsonLine() : text_(k_usual, '\0') {}

    /// A key that is written in the source is copied without asking for its length.
    template <std::size_t Size, typename T>
    JsonLine& add(const char (&key)[Size], const T& value) {
        put_key(key, Size - 1);
        put_value(value);
        return *this;
    }
    template <typename T>
    JsonLine& add(std::string_view key, const T& value) {
        put_key(key.data(), key.size());
        put_value(value);
        return *this;
    }
    template <std::size_t Size, typename T>
    JsonLine& add(const char (&key)[Size], const std::optional<T>& value) {
        return value ? add(key, *value) : *this;
    }
    std::string finish() &&;

  private:
    static constexpr std::size_t k_usual = 1024;  ///< bytes of a line

    /// A place for so many more characters.
    char* room(std::size_t size) {
        if (text_.size() - used_ < size) grow(size);
        return text_.data() + used_;
    }
    /// `,"key":` The comma before the first member becomes the object's beginning. Inline, so that the size
    /// of a key of the source is a constant here too.
    [[gnu::always_inline]] void put_key(const char* key, std::size_t size) {
        constexpr std::size_t k_before = 2, k_behind = 2;
        char* const begin = room(k_before + size + k_behind);
        std::memcpy(begin, ",\"", k_before);
        std::memcpy(begin + k_before, key, size);
        std::memcpy(begin + k_before + size, "\":", k_behind);
        used_ += k_before + size + k_behind;
    }
    void put_value(std::string_view value);
    /// Else a literal would be a bool.
    void put_value(const char* value) { put_value(std::string_view(value)); }
    void put_value(std::int64_t value);
    void put_value(bool value) { put(value ? "true" : "false"); }
    void put_value(double value);
    void grow(std::size_t size);
    void put(std::string_view text);
    void escaped(std::string_view text);

    std::string text_;
    /// Of text_. A line has some hundred small parts, and appending each has its price.
    std::size_t used_ = 0;
};

/// A moment as RFC 3339 with milliseconds, UTC.
class Rfc3339 {
  public:
    static constexpr std::size_t size = 24;
    explicit Rfc3339(const std::array<char, size>& text) : text_(text) {}
    operator std::string_view() const { return {text_.data(), size}; }
    std::string str() const { return std::string(std::string_view(*this)); }

  private:
    std::array<char, size> text_;
};

Rfc3339 rfc3339_now();

}  // namespace noren::metrics
