#include "proxy/http/max_forwards.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

namespace noren::proxy::http {
namespace {

MaxForwards read(std::string_view method, const std::vector<std::string_view>& lines) {
    Fields fields;
    for (const std::string_view line : lines)
        fields.add("Max-Forwards", line);
    return max_forwards(method, fields);
}

}  // namespace

TEST_CASE("Max-Forwards is one decimal number, and of OPTIONS only") {
    CHECK(read("OPTIONS", {"0"}).value == 0);
    CHECK(read("OPTIONS", {"000"}).value == 0);
    CHECK(read("OPTIONS", {"10"}).value == 10);
    CHECK(read("OPTIONS", {"99999999999999999999999"}).value ==
          std::uint64_t{std::numeric_limits<std::int64_t>::max()});
    CHECK_FALSE(read("OPTIONS", {}).value.has_value());
    for (const std::vector<std::string_view>& lines : std::vector<std::vector<std::string_view>>{
             {""}, {"-1"}, {"+1"}, {"1.0"}, {"0x1"}, {"1 1"}, {"1, 1"}, {"ten"}, {"1", "1"}, {"0", "1"}}) {
        INFO(lines.front());
        const MaxForwards forwards = read("OPTIONS", lines);
        REQUIRE(forwards.error.has_value());
        CHECK(forwards.error->status == 400);
        CHECK_FALSE(forwards.value.has_value());
        CHECK_FALSE(read("GET", lines).error.has_value());
        CHECK_FALSE(read("GET", lines).value.has_value());
        CHECK_FALSE(read("options", lines).error.has_value());  // methods are case-sensitive
    }
}

}  // namespace noren::proxy::http
