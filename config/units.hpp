#pragma once
// Durations and sizes as people write them: a whole number and a unit (`250ms`, `16MiB`).

#include <string>
#include <string_view>
#include <variant>

#include "config/config.hpp"

namespace noren::config {

/// Why a text is no duration or size.
enum class UnitError {
    no_number,     ///< does not begin with a whole number, or has a leading zero
    no_unit,       ///< a bare number other than 0: seconds or milliseconds cannot be told apart
    unknown_unit,  ///< also the decimal ones (`KB`): a factor of 1024 is never guessed
    too_large,     ///< does not fit
};

/// Units `ms`, `s`, `m`, `h`; a bare `0` is allowed.
std::variant<Duration, UnitError> parse_duration(std::string_view text);

/// Units `KiB`, `MiB`, `GiB`, or a bare number of bytes.
std::variant<Bytes, UnitError> parse_size(std::string_view text);

/// In the largest unit that loses nothing: `90s`, `2m`, `250ms`, `0`. Reads back as the same duration.
std::string format_duration(Duration duration);

/// In the largest unit that loses nothing: `16MiB`, `1000`. Reads back as the same size.
std::string format_size(Bytes size);

}  // namespace noren::config
