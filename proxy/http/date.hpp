#pragma once
// The Date field (RFC 9110 6.6.1).

#include <chrono>
#include <string>
#include <string_view>

namespace noren::proxy::http {

/// IMF-fixdate (RFC 9110 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT", whatever the locale.
std::string imf_fixdate(std::chrono::sys_seconds at);

/// Writes a second's text once. For one thread.
class DateClock {
  public:
    /// A view that is good until the next call.
    std::string_view at(std::chrono::system_clock::time_point now);

  private:
    std::chrono::sys_seconds second_{};
    std::string text_;
};

}  // namespace noren::proxy::http
