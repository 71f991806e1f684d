#pragma once
// `noren observe`: what noren would record for a captured answer body; for "why is my TTFT missing?".

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace noren::proxy {

struct ObserveOptions {
    std::string file;  ///< "-" = standard input
    int status = 200;
    std::string content_type;  ///< empty: told from the body's first bytes
    std::string content_encoding;
    std::int64_t sequences = 0;  ///< of each prompt, as the request asked for (n); 0: not known
    std::string split;  ///< empty: in one piece; a number: in pieces of so many bytes; "all": every way
};

/// The one-object report for a body in memory, fed in pieces of piece bytes (0: in one).
std::string observe_report(const ObserveOptions& options, std::string_view body, std::size_t piece);

/// Exit status: 0 done, 1 the ways of cutting disagree, 2 unusable input.
int observe_command(const ObserveOptions& options, std::ostream& out, std::ostream& err);

}  // namespace noren::proxy
