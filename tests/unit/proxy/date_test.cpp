#include "proxy/http/date.hpp"

#include <chrono>

#include <catch2/catch.hpp>

namespace noren::proxy::http {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_seconds;

}  // namespace

TEST_CASE("dates as HTTP writes them") {
    CHECK(imf_fixdate(sys_seconds(0s)) == "Thu, 01 Jan 1970 00:00:00 GMT");
    CHECK(imf_fixdate(sys_seconds(784111777s)) == "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110 5.6.7
    CHECK(imf_fixdate(sys_seconds(951827696s)) == "Tue, 29 Feb 2000 12:34:56 GMT");
    CHECK(imf_fixdate(sys_seconds(1798761599s)) == "Thu, 31 Dec 2026 23:59:59 GMT");
    CHECK(imf_fixdate(sys_seconds(253402300799s)) == "Fri, 31 Dec 9999 23:59:59 GMT");
}

TEST_CASE("a date clock changes with the second, in both directions") {
    DateClock clock;
    const sys_seconds second(784111777s);
    CHECK(clock.at(second) == "Sun, 06 Nov 1994 08:49:37 GMT");
    const char* const text = clock.at(second + 999ms).data();
    CHECK(clock.at(second + 1ms).data() == text);
    CHECK(clock.at(second + 999ms) == "Sun, 06 Nov 1994 08:49:37 GMT");
    CHECK(clock.at(second + 1s) == "Sun, 06 Nov 1994 08:49:38 GMT");
    CHECK(clock.at(second) == "Sun, 06 Nov 1994 08:49:37 GMT");  // somebody set the wall clock
    CHECK(DateClock().at(sys_seconds(0s)) == "Thu, 01 Jan 1970 00:00:00 GMT");
}

}  // namespace noren::proxy::http
