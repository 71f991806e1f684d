#pragma once
// A Config as text: the effective configuration for /-/config, single values for logs.

#include <string>

#include "config/config.hpp"
#include "config/value.hpp"

namespace noren::config {

/// Every key, as YAML that load_text reads back to the same Config. User and password in URLs become `***`.
std::string render(const Config& config);

/// A scalar or a list of scalars on one line, in YAML's flow style.
std::string render_inline(const Value& value);

}  // namespace noren::config
