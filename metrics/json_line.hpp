#pragma once
// One line of a log, as a JSON object.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace noren::metrics {

/// Builds it member by member. Strings come out as valid UTF-8 whatever bytes went in, cut after 1 KiB; an
/// empty optional adds nothing.
class JsonLine {
  public:
    JsonLine() : text_(k_usual, '{'), used_(1) {}
    JsonLine& add(std::string_view key, std::string_view value);
    JsonLine& add(std::string_view key, std::int64_t value);
    JsonLine& add(std::string_view key, bool value);
    /// Milliseconds or a rate: three decimals; null if it is not finite or beyond 1e15.
    JsonLine& add(std::string_view key, double value);
    template <typename T>
    JsonLine& add(std::string_view key, const std::optional<T>& value) {
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
    void grow(std::size_t size);
    void put(std::string_view text);
    void key(std::string_view name);
    void escaped(std::string_view text);

    std::string text_;
    std::size_t used_;  ///< of text_; a line has some hundred small parts, and appending each has its price
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
