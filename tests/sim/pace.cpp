#include "tests/sim/pace.hpp"

#include <cmath>

#include "tests/sim/token_text.hpp"

namespace sim {

GapSource::GapSource(const Pace& pace, std::uint64_t seed, std::string_view request_id)
    : pace_(pace), random_(mix(seed ^ stream_key(request_id))) {}

Duration GapSource::next() {
    if (!pace_.exponential) return pace_.gap;
    // By inversion and not by std::exponential_distribution, whose draws are each library's own affair.
    const double uniform = static_cast<double>(random_() >> 11U) * 0x1.0p-53;
    return Duration(std::llround(-std::log1p(-uniform) * static_cast<double>(pace_.gap.count())));
}

}  // namespace sim
