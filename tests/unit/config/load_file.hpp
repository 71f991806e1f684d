#pragma once
// A Config from a file alone: no environment, no flags but the one that names it.

#include <string>

#include "config/load.hpp"

namespace noren::test {

inline config::Resolved load_file(const std::string& path) {
    config::Sources sources;
    sources.flags.config = path;
    return config::load(sources);
}

}  // namespace noren::test
