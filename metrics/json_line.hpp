#pragma once
// One line of a log, as a JSON object.

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
    JsonLine() {
        text_.reserve(k_usual);
        text_.push_back('{');
    }
    JsonLine& add(std::string_view key, std::string_view value);
    JsonLine& add(std::string_view key, std::int64_t value);
    JsonLine& add(std::string_view key, bool value);
    /// Milliseconds or a rate: three decimals; null if it is not finite or beyond 1e15.
    JsonLine& add(std::string_view key, double value);
    template <typename T>
    JsonLine& add(std::string_view key, const std::optional<T>& value) {
        return value ? add(key, *value) : *this;
    }
    std::string finish() && { return std::move(text_.append("}")); }

  private:
    static constexpr std::size_t k_usual = 1024;  ///< bytes of a line

    void key(std::string_view name);
    std::string text_;
};

/// Now, as RFC 3339 with milliseconds, UTC.
std::string rfc3339_now();

}  // namespace noren::metrics
