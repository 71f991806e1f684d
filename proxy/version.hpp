#pragma once

#include <string_view>

namespace noren::proxy {

std::string_view version();   ///< "0.1.0"
std::string_view revision();  ///< of the source, or "unknown"
std::string_view compiler();

}  // namespace noren::proxy
