#pragma once
// A JSON number, -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?, whose characters come in pieces.

#include <cstdint>
#include <optional>

namespace noren::metrics {

class JsonNumber {
  public:
    /// How far from at the number goes. It has ended if that is short of end.
    const char* scan(const char* at, const char* end);

    bool only_minus() const { return part_ == Part::minus; }
    /// What has come is a number as it stands.
    bool complete() const {
        return part_ == Part::zero || part_ == Part::integer || part_ == Part::fraction ||
               part_ == Part::exponent;
    }
    /// Without a fraction and an exponent.
    bool is_integer() const { return part_ == Part::zero || part_ == Part::integer; }
    /// That integer, if 64 bits hold it.
    std::optional<std::int64_t> value() const;
    bool is_zero() const { return zero_; }

  private:
    enum class Part : unsigned char { start, minus, zero, integer, point, fraction, e, e_sign, exponent };

    const char* scan_integer(const char* at, const char* end);
    const char* scan_fraction(const char* at, const char* end);
    const char* scan_exponent(const char* at, const char* end);

    Part part_ = Part::start;
    bool negative_ = false, zero_ = true, too_big_ = false;
    std::uint64_t magnitude_ = 0;
};

}  // namespace noren::metrics
