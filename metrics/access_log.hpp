#pragma once
// One JSON line per exchange: everything an operator needs to say where a slow answer was slow, nothing a
// client would not want written down (no bodies, no queries, no keys).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/exchange_meter.hpp"

namespace noren::metrics {

/// Appends a JSON object's members. Strings come out as valid UTF-8 whatever bytes went in.
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
