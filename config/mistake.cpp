#include "config/mistake.hpp"

namespace noren::config {

std::string Mistake::to_string() const {
    std::string out = file;
    if (line > 0) out += ':' + std::to_string(line);
    out += ": ";
    if (!key.empty()) out += key + ": ";
    return out + "found " + found + ", expected " + expected;
}

}  // namespace noren::config
