#pragma once
// What a request is for, told by its path: metric label, dialect of its errors, whether it needs a permit.

#include <string>
#include <string_view>
#include <vector>

#include "metrics/exchange_meter.hpp"

namespace noren::proxy {

/// Whose client libraries will read our refusals.
enum class Dialect : unsigned char { openai, anthropic, tgi, ollama };

struct Route {
    metrics::ApiEndpoint endpoint = metrics::ApiEndpoint::passthrough;
    Dialect dialect = Dialect::openai;
    bool gated = false;
};

/// Immutable after construction; shared by all workers.
class RouteTable {
  public:
    /// patterns: paths that are gated for every method but GET, HEAD, OPTIONS and DELETE; `*` is one segment.
    explicit RouteTable(const std::vector<std::string>& patterns);

    /// target: origin-form. What a server might fold into a gated path (%-escapes, empty and dot segments, a
    /// slash at the end, upper case) is folded here too, so that none of it is a way around the gate. Where
    /// servers differ in the order (split or unescape first), either reading is enough.
    Route find(std::string_view method, std::string_view target) const;

  private:
    std::vector<std::vector<std::string>> gated_;  ///< patterns in segments
};

/// The path of an origin-form target, without its query.
std::string_view path_of(std::string_view target);

}  // namespace noren::proxy
