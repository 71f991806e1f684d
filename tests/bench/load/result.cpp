#include "tests/bench/load/result.hpp"

namespace load {

std::optional<double> Result::ttft() const {
    if (!first) return std::nullopt;
    return std::chrono::duration<double>(*first - start).count();
}

std::optional<double> Result::tpot() const {
    if (!first || tokens < 2 || *last <= *first) return std::nullopt;
    return std::chrono::duration<double>(*last - *first).count() / static_cast<double>(tokens - 1);
}

}  // namespace load
