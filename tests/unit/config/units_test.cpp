#include "config/units.hpp"

#include <chrono>

#include <catch2/catch.hpp>

namespace config = noren::config;
using config::UnitError;
using namespace std::chrono_literals;

namespace {

std::string read_duration(std::string_view text) {
    const auto parsed = config::parse_duration(text);
    const auto* duration = std::get_if<config::Duration>(&parsed);
    return duration ? std::to_string(duration->count()) : "error";
}

UnitError duration_error(std::string_view text) {
    return std::get<UnitError>(config::parse_duration(text));
}
UnitError size_error(std::string_view text) {
    return std::get<UnitError>(config::parse_size(text));
}

}  // namespace

TEST_CASE("durations are read with their unit") {
    CHECK(read_duration("250ms") == "250");
    CHECK(read_duration("30s") == "30000");
    CHECK(read_duration("5m") == "300000");
    CHECK(read_duration("1h") == "3600000");
    CHECK(read_duration("0") == "0");
    CHECK(read_duration("0s") == "0");
}

TEST_CASE("a duration that could be misread is not read") {
    CHECK(duration_error("30") == UnitError::no_unit);
    CHECK(duration_error("30S") == UnitError::unknown_unit);
    CHECK(duration_error("30 s") == UnitError::unknown_unit);
    CHECK(duration_error("1.5s") == UnitError::unknown_unit);
    CHECK(duration_error("1m30s") == UnitError::unknown_unit);
    CHECK(duration_error("1d") == UnitError::unknown_unit);
    for (const char* text : {"", "s", "-1s", "+1s", " 1s", "010s", "00", "soon"}) {
        INFO(text);
        CHECK(duration_error(text) == UnitError::no_number);
    }
}

TEST_CASE("a duration that does not fit is told, at the edge exactly") {
    CHECK(read_duration("9223372036854775807ms") == "9223372036854775807");
    CHECK(duration_error("9223372036854775808ms") == UnitError::too_large);
    CHECK(read_duration("9223372036854775s") == "9223372036854775000");
    CHECK(duration_error("9223372036854776s") == UnitError::too_large);
    CHECK(duration_error("99999999999999999999999h") == UnitError::too_large);
}

TEST_CASE("sizes are read with a binary unit or as bytes") {
    CHECK(std::get<config::Bytes>(config::parse_size("64KiB")) == 64 * 1024);
    CHECK(std::get<config::Bytes>(config::parse_size("16MiB")) == 16 * 1024 * 1024);
    CHECK(std::get<config::Bytes>(config::parse_size("1GiB")) == 1024ull * 1024 * 1024);
    CHECK(std::get<config::Bytes>(config::parse_size("1000")) == 1000);
    CHECK(std::get<config::Bytes>(config::parse_size("0")) == 0);
    CHECK(std::get<config::Bytes>(config::parse_size("17179869183GiB")) == 17179869183ull << 30);
}

TEST_CASE("a size with a unit of 1000, or too large, is not read") {
    for (const char* text : {"64KB", "64K", "64k", "64kib", "1MB", "1TiB", "1B", "1.5MiB"}) {
        INFO(text);
        CHECK(size_error(text) == UnitError::unknown_unit);
    }
    CHECK(size_error("17179869184GiB") == UnitError::too_large);
    CHECK(size_error("MiB") == UnitError::no_number);
}

TEST_CASE("what is formatted is exact, short, and reads back") {
    CHECK(config::format_duration(0ms) == "0");
    CHECK(config::format_duration(1ms) == "1ms");
    CHECK(config::format_duration(1500ms) == "1500ms");
    CHECK(config::format_duration(90s) == "90s");
    CHECK(config::format_duration(2min) == "2m");
    CHECK(config::format_duration(48h) == "48h");
    CHECK(config::format_size(0) == "0");
    CHECK(config::format_size(1000) == "1000");
    CHECK(config::format_size(256 * 1024) == "256KiB");
    CHECK(config::format_size(3ull << 30) == "3GiB");

    for (std::int64_t amount = 1; amount < 100'000'000; amount = amount * 3 + 7) {
        const config::Duration duration{amount};
        CHECK(std::get<config::Duration>(config::parse_duration(config::format_duration(duration))) ==
              duration);
        const auto size = static_cast<config::Bytes>(amount) * 1024;
        CHECK(std::get<config::Bytes>(config::parse_size(config::format_size(size))) == size);
    }
}
