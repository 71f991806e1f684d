#pragma once
// What this program is.

#include <string_view>

namespace noren::proxy {

std::string_view version();   ///< "0.1.0"
std::string_view revision();  ///< of the source, or "unknown"
std::string_view compiler();  ///< "gcc 12.2.0"

}  // namespace noren::proxy
