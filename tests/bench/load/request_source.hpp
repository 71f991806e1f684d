#pragma once
// Where the requests of a run come from, and when. Sans-IO, and the same for the same seed.

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/load/options.hpp"

namespace load {

struct Request {
    std::string id;
    std::string path;
    std::string body;
    std::optional<std::uint32_t> tokens;                   ///< asked for; unknown for a body from a file
    std::optional<std::chrono::microseconds> leave_after;  ///< our client goes away then
    bool slow = false;                                     ///< our client reads slowly
};

class RequestSource {
  public:
    explicit RequestSource(const Options& options) : options_(options), random_(options.seed) {}

    Request next();
    std::uint64_t issued() const { return issued_; }

  private:
    std::uint32_t within(const Range& range);
    bool chance(double probability);

    const Options& options_;
    std::mt19937_64 random_;
    std::uint64_t issued_ = 0;
};

/// The gaps of a Poisson process: requests that know nothing of each other.
class Arrivals {
  public:
    Arrivals(double per_second, std::uint64_t seed) : random_(seed), gap_(per_second) {}
    std::chrono::nanoseconds next_gap();

  private:
    std::mt19937_64 random_;
    std::exponential_distribution<> gap_;
};

/// JSON lines, each {"prompt": "..."}, {"body": {...}} or {"body": "bytes to send as they are"}; blank lines
/// are passed over. Throws std::runtime_error naming `name` and the line.
std::vector<Prompt> read_prompts(std::istream& in, const std::string& name);

}  // namespace load
